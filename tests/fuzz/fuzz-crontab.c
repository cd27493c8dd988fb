/* SPDX-License-Identifier: MIT */

/* Crontabs of all three kinds (the first byte chooses): what comes of them is a config without errors. */

#include <string.h>

#include "cli/import/import.h"
#include "conf/settings.h"
#include "tests/fuzz/fuzz.h"

static bool is_zone(const char *name, _unused_ void *userdata) {
    return strcmp(name, "Europe/Berlin") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char kinds[] = {CRONTAB_OF_USER, CRONTAB_SYSTEM, CRONTAB_ANACRON};
    _cleanup_free_ char *text = size > 0 ? strndup((const char *) data + 1, size - 1) : NULL, *config = NULL;
    struct import_source source = {
        .text = text, .file = "crontab", .user = "root", .prefix = "cron", .is_zone = is_zone};
    struct settings_errors errors = {};
    struct settings *settings = NULL;
    struct import import = {};
    size_t n_config = 0;
    int r;

    if (!text)
        return 0;
    source.kind = (enum crontab_kind) kinds[data[0] % 3];
    import.out = open_memstream(&config, &n_config);
    import_begin(&import);
    FUZZ_ASSERT(import_crontab(&import, &source) == 0);
    FUZZ_ASSERT(fclose(import.out) == 0);
    r = settings_parse(&(struct settings_source){"cron.conf", config, n_config}, 1, "host", &settings,
                       &errors);
    for (size_t i = 0; i < errors.n; i++)
        fprintf(stderr, "%s\n", errors.lines[i]);
    FUZZ_ASSERT(r == 0 && settings->n_jobs == import.n_jobs);
    FUZZ_ASSERT(import.n_lines == import.n_jobs + import.n_left_out);
    settings_errors_done(&errors);
    settings_free(settings);
    import_done(&import);
    return 0;
}
