# SPDX-License-Identifier: MIT
# make          builds build/berthd, build/berth-runner, build/berth, build/berth-verbs and build/berth-web
# make check    installs what is missing (apt), builds, runs all tests
# make demo     shows three hosts on this machine; HACKING.md has the other targets

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
LIBEXECDIR ?= $(PREFIX)/libexec/berth
SYSCONFDIR ?= /etc
DOCDIR ?= $(PREFIX)/share/doc/berth
DESTDIR ?=
CC ?= cc
PKG_CONFIG ?= pkg-config
VERSION := $(shell sed -n '1s/^berth \([^ ]*\).*/\1/p' NEWS.md)

ifneq ($(FUZZ),)
BUILD ?= build/fuzz
CC := clang
SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS ?= -O1 -g
else ifneq ($(SAN),)
BUILD ?= build/san
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS ?= -O1 -g1
else
BUILD ?= build
SANITIZE :=
endif
CFLAGS ?= -O2 -g
# Warnings are errors only in continuous integration, because newer compilers warn of more.
WERROR ?=
Q := $(if $(V),,@)
quote = '$(subst ','\'',$(1))'

PACKAGES := libsystemd hiredis libconfuse jansson smartcols libmicrohttpd
LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES))
# Debian's smartcols.h needs its own folder as include path; that of hiredis differs between 0.14 and 1.x.
# OpenSSL is loaded, not linked (store/redis/client/tls-library.h).
INCLUDES = $(shell $(PKG_CONFIG) --cflags $(PACKAGES) openssl)
# On a 32-bit machine: times after 2038 and files of more than 2 GiB.
WIDE := $(if $(filter 32,$(shell getconf LONG_BIT)),-D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64)
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WIDE) -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes -Wvla -Wformat=2 \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wundef -fno-common -fstack-protector-strong \
	-DVERSION='"$(VERSION)"' -DLIBEXECDIR='"$(LIBEXECDIR)"' -DSYSCONFDIR='"$(SYSCONFDIR)"' \
	-I. -I$(BUILD)/generated $(INCLUDES) $(SANITIZE) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(SANITIZE) -Wl,-z,relro,-z,now -Wl,--as-needed $(LDFLAGS)
COMPILE = $(CC) $(ALL_CFLAGS)

# Each top-level folder, without its main.c, is one archive.
sources = $(sort $(shell find $(1) -name '*.c'))
objects = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c,$(call sources,$(1))))
BASE := $(BUILD)/base.a
CONF := $(BUILD)/conf.a
STORE := $(BUILD)/store.a
DAEMON := $(BUILD)/daemon.a
RUNNER := $(BUILD)/runner.a
CLI := $(BUILD)/cli.a
WEB := $(BUILD)/web.a
HARNESS := $(BUILD)/harness.a
MODEL := $(BUILD)/model.a
PROGRAMS := $(BUILD)/berthd $(BUILD)/berth-runner $(BUILD)/berth $(BUILD)/berth-verbs $(BUILD)/berth-web
TEST_KINDS := unit contract integration attacks model
# Tests whose path has a word of $TEST_WITHOUT are neither built nor run.
TEST_FILES := $(sort $(shell find $(addprefix tests/,$(TEST_KINDS)) -name 'test-*'))
TEST_FILES := $(filter-out $(foreach word,$(TEST_WITHOUT),$(foreach file,$(TEST_FILES),$(if $(findstring $(word),$(file)),$(file)))),$(TEST_FILES))
TESTS := $(patsubst %.c,$(BUILD)/%,$(filter %.c,$(TEST_FILES)))
SCRIPTS := $(patsubst %.sh,$(BUILD)/%,$(filter %.sh,$(TEST_FILES)))
TOOLS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/tools/*.c))
PRELOADS := $(patsubst tests/%.c,$(BUILD)/tests/%.so,$(wildcard tests/preload/*.c))
FAULTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/faults/test-*.c))
FAULT_PARTS := $(BUILD)/fault-parts.a
FUZZERS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/fuzz/fuzz-*.c))
BENCH_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/*.c))
BENCH := $(BUILD)/tests/bench/berth-bench $(addprefix $(BUILD)/tests/bench/tools/,floor stamp span)

.PHONY: all tests test-programs deps check bench bench-hops mutate prove faults faults-slice fuzz fuzzers demo lint which clean FORCE
all: $(PROGRAMS) $(BUILD)/compile_commands.json
tests: test-programs $(FAULTS) $(BENCH)
# What tests/run.sh runs.
test-programs: $(TESTS) $(SCRIPTS) $(TOOLS) $(PRELOADS)

$(BASE): $(call objects,base)
$(CONF): $(call objects,conf)
$(STORE): $(call objects,store)
$(DAEMON): $(call objects,daemon)
$(RUNNER): $(call objects,runner)
$(CLI): $(call objects,cli)
$(WEB): $(call objects,web)
$(HARNESS): $(filter-out %/manager-bed.o,$(call objects,tests/harness))
$(MODEL): $(filter-out $(BUILD)/tests/model/test-%,$(call objects,tests/model))
$(FAULT_PARTS): $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/faults/test-%.c,$(call sources,tests/faults)))

# $(eval $(call program,PROGRAMS,OBJECTS AND ARCHIVES,FLAGS,LIBRARIES)); PROGRAMS may end with a pattern: "PROGRAMS: build/%".
define program
$(1): $(2)
	@echo "  LD      $$@"
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_LDFLAGS) $(3) -o $$@ $$(filter %.o,$$^) $$(filter %.a,$$^) $$(LIBS) $(4)
endef
TEST := $(BUILD)/tests/%
BERTH_PARTS := $(DAEMON) $(STORE) $(CONF) $(BASE)
ALL_PARTS := $(WEB) $(CLI) $(RUNNER) $(BERTH_PARTS)
# Calls whose failure a test simulates: its line "wrap: -Wl,--wrap=...".
WRAPS = $$(if $$(findstring -wrap,$$@),$$(shell sed -n 's|^/\* wrap: \(.*\) \*/|\1|p' tests/$$*.c))

$(eval $(call program,$(BUILD)/berthd,$(BUILD)/daemon/main.o $(BERTH_PARTS)))
$(eval $(call program,$(BUILD)/berth-runner,$(BUILD)/runner/main.o $(RUNNER) $(CONF) $(BASE)))
$(eval $(call program,$(BUILD)/berth-verbs,$(BUILD)/cli/main.o $(CLI) $(CONF) $(BASE)))
# Its own sd-event comes before libsystemd, which is not loaded then.
$(eval $(call program,$(BUILD)/berth,$(call objects,front) $(BUILD)/front/main.o $(CLI) $(BASE)))
$(eval $(call program,$(BUILD)/berth-web,$(BUILD)/web/main.o $(WEB) $(BASE)))
$(eval $(call program,$(TESTS): $(TEST),$(TEST).o $(MODEL) $(HARNESS) $(ALL_PARTS),$(WRAPS),-lcunit -lm))
$(eval $(call program,$(FAULTS): $(TEST),$(TEST).o $(FAULT_PARTS) $(HARNESS) $(CLI) $(BERTH_PARTS),,-lcunit))
$(eval $(call program,$(FUZZERS): $(TEST),$(TEST).o $(ALL_PARTS),-fsanitize=fuzzer))
$(eval $(call program,$(TOOLS): $(TEST),$(TEST).o $(BASE)))
$(eval $(call program,$(BUILD)/tests/bench/berth-bench,$(BENCH_OBJECTS) $(HARNESS) $(BERTH_PARTS),,-lm))
$(eval $(call program,$(BUILD)/tests/bench/tools/floor: %,%.o))
$(eval $(call program,$(BUILD)/tests/bench/tools/stamp: %,%.o))
# Static, so that it starts fast.
$(BUILD)/tests/bench/tools/span: tests/bench/tools/span.c tests/bench/span.h $(BUILD)/flags
	@echo "  LD      $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SANITIZE),$(ALL_CFLAGS)) -static $(LDFLAGS) -o $@ $<
# The fake links to runner and guards come before the real ones; only a test that includes them uses them.
$(patsubst tests/%.c,$(TEST),$(shell grep -l '"tests/harness/runner/manager-bed.h"' $(TEST_FILES))): $(BUILD)/tests/harness/runner/manager-bed.o
$(BUILD)/tests/unit/front/test-event-loop: $(call objects,front)
$(BUILD)/tests/fuzz/fuzz-redis: $(BUILD)/tests/harness/redis/redis-peer.o $(BUILD)/tests/harness/redis/redis-peer-answer.o

$(BUILD)/tests/unit/base/test-due-times $(BUILD)/tests/integration/jobs/test-import-crontab: $(BUILD)/tests/tools/due-times

# Without sanitizers: redis-server loads them.
$(PRELOADS): $(BUILD)/tests/%.so: tests/%.c $(BUILD)/flags
	@echo "  LD      $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SANITIZE),$(ALL_CFLAGS)) -fPIC -shared $(LDFLAGS) -o $@ $<

$(SCRIPTS): $(BUILD)/tests/%: tests/%.sh
	$(Q)install -D -m 0755 $< $@

%.a:
	@echo "  AR      $@"
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@ && ar qcsD $@ $^ # q: files of two folders may have the same name

$(BUILD)/%.o: %.c $(BUILD)/flags Makefile
	@echo "  CC      $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(COMPILE) $(UNOPTIMIZED) -MMD -MP -c -o $@ $<

# Tests are not optimized: they spend their time in berth and in Redis. Benches are.
$(BUILD)/tests/%.o: UNOPTIMIZED := -O0 -U_FORTIFY_SOURCE
$(BUILD)/tests/bench/%.o: UNOPTIMIZED :=

# A file with the compiler and its flags: objects are built again when it changes.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call quote,$(COMPILE)) | cmp -s - $@ || printf '%s\n' $(call quote,$(COMPILE)) >$@

# For clangd and editors, which look for it in build/.
C_FILES := $(sort $(shell find base conf store daemon runner cli front web tests -name '*.c'))
$(BUILD)/compile_commands.json: $(BUILD)/flags $(sort $(dir $(C_FILES)))
	@command=$$(sed 's/["\\]/\\&/g' $<) && printf '%s\n' $(C_FILES) | \
		awk -v folder='$(CURDIR)' -v command="$$(printf '%s' "$$command" | sed 's/\\/\\\\/g')" \
		'{ printf "%s{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s -c %s\"}", \
		(NR == 1 ? "[" : ",\n"), folder, $$0, command, $$0 } END { print "]" }' >$@

# Texts that are compiled into programs: each becomes a C string literal.
GENERATED := $(patsubst %,$(BUILD)/generated/%.inc,$(shell grep -l '^#!lua' store/redis/lua/*.lua) $(wildcard daemon/api/*.varlink) $(wildcard web/page/*))
$(call objects,store) $(call objects,daemon) $(call objects,web): | $(GENERATED)
$(BUILD)/generated/store/redis/lua/%.inc: store/redis/lua/% $(wildcard store/redis/lua/*)
	@echo "  GEN     $@"
	$(Q)mkdir -p $(@D)
	$(Q)store/redis/lua/assemble.sh $< >$@.new && mv $@.new $@
$(BUILD)/generated/%.inc: %
	@echo "  GEN     $@"
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$$/\\n"/' $< >$@

deps:
	@tests/deps.sh

check: deps
	@$(MAKE) --no-print-directory all tests
	@BUILD=$(BUILD) tests/run.sh

bench: deps
	@$(MAKE) --no-print-directory all tests $(BENCH)
	@BUILD=$(BUILD) tests/bench/run.sh

# Measures each step from one command to the next, in a build that records them.
bench-hops: deps
	@$(MAKE) --no-print-directory $(WITH_FAILPOINTS) all $(patsubst $(BUILD)/%,build/failpoints/%,$(BENCH))
	@BUILD=build/failpoints tests/bench/run.sh hops hops-busy

# Faults alone and mixed, some minutes; writes doc/faults.md. A case takes nine seconds and one second of processor
# time, so twelve run at once on two processors. make faults SEED=n MIXES=n JOBS=n
SEED ?= 1
MIXES ?= 20
RESTARTS ?= 20
WITH_FAILPOINTS = BUILD=build/failpoints CPPFLAGS="$(CPPFLAGS) -DBERTH_FAILPOINTS"
faults: deps
	@tests/check-lessons.sh
	@$(MAKE) --no-print-directory $(WITH_FAILPOINTS) all tests
	@RESTARTS=$(RESTARTS) BERTH_BUILD=build/failpoints tests/faults/run.sh --failpoints --seed $(SEED) --mixes $(MIXES) --jobs $(or $(JOBS),12) \
		--report doc/faults.md

# Each fault once and a few mixes, a minute.
faults-slice: deps
	@$(MAKE) --no-print-directory all tests
	@RESTARTS=5 BERTH_BUILD=$(BUILD) tests/faults/run.sh --slice --seed $(SEED) --mixes 4 --jobs $(or $(JOBS),16)

# Breaks berth in each way that tests/mutations lists; a test must fail each time. make mutate ONLY="part of a name" JOBS=n
mutate: deps
	@JOBS=$(or $(JOBS),4) tests/mutate.sh '$(ONLY)'

# Visits every state of a model of the permit protocol, in Promela for spin: make prove ONLY="words"
prove:
	@LINT_DEPS=yes tests/deps.sh
	@BUILD=$(BUILD) tests/prove/run.sh $(ONLY)

# libFuzzer, ten minutes each: make fuzz SECONDS=n
SECONDS ?= 600
fuzz:
	@LINT_DEPS=yes tests/deps.sh
	@$(MAKE) --no-print-directory FUZZ=1 fuzzers
	@BUILD=build/fuzz tests/fuzz/run.sh $(SECONDS)
fuzzers: $(FUZZERS)

demo: deps
	@$(MAKE) --no-print-directory all
	@BUILD=$(BUILD) conf/examples/demo/demo.sh

lint: export LINT_FLAGS = $(ALL_CFLAGS) -Werror
lint: $(GENERATED)
	@LINT_DEPS=yes tests/deps.sh
	@tests/lint.sh $(ONLY)

include packaging/packaging.mk

# The tests of a file: make which FILE=store/redis/link/link.c
which:
	@BUILD=$(BUILD) tests/which.sh $(FILE)

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' -type f 2>/dev/null)
.SECONDARY:
