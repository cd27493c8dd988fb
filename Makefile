# SPDX-License-Identifier: MIT
# berth: `make` builds, `make check` tests, `make demo` shows the main job. HACKING.md has the rest.

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
else ifneq ($(SAN),)
BUILD ?= build/san
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS ?= -O1 -g
else
BUILD ?= build
SANITIZE :=
endif
CFLAGS ?= -O2 -g
Q := $(if $(V),,@)

PACKAGES := libsystemd hiredis libconfuse jansson smartcols
LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES))
# Debian's smartcols.h wants its own folder; hiredis 0.14 and 1.x differ in theirs.
INCLUDES = $(shell $(PKG_CONFIG) --cflags $(PACKAGES))
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wvla -Wformat=2 \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wundef -fno-common -fstack-protector-strong \
	-DVERSION='"$(VERSION)"' -DLIBEXECDIR='"$(LIBEXECDIR)"' -DSYSCONFDIR='"$(SYSCONFDIR)"' \
	-I. -I$(BUILD)/generated $(INCLUDES) $(SANITIZE) $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(SANITIZE) -Wl,-z,relro,-z,now $(LDFLAGS)

# Each folder of the top level, without its main.c, is one archive; what is not used is not linked.
sources = $(sort $(shell find $(1) -name '*.c'))
objects = $(patsubst %.c,$(BUILD)/%.o,$(filter-out %/main.c,$(call sources,$(1))))
BASE := $(BUILD)/base.a
CONF := $(BUILD)/conf.a
STORE := $(BUILD)/store.a
DAEMON := $(BUILD)/daemon.a
RUNNER := $(BUILD)/runner.a
CLI := $(BUILD)/cli.a
HARNESS := $(BUILD)/harness.a
MODEL := $(BUILD)/model.a
PROGRAMS := $(BUILD)/berthd $(BUILD)/berth-runner $(BUILD)/berth
TEST_KINDS := unit contract integration attacks model
TEST_FILES := $(sort $(shell find $(addprefix tests/,$(TEST_KINDS)) -name 'test-*'))
TESTS := $(patsubst %.c,$(BUILD)/%,$(filter %.c,$(TEST_FILES)))
SCRIPTS := $(patsubst %.sh,$(BUILD)/%,$(filter %.sh,$(TEST_FILES)))
TOOLS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/tools/*.c)) $(patsubst tests/%.c,$(BUILD)/tests/%.so,$(wildcard tests/preload/*.c))
FAULTS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/faults/test-*.c))
FAULT_PARTS := $(BUILD)/fault-parts.a
FUZZERS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/fuzz/fuzz-*.c))
BENCH := $(BUILD)/tests/bench/berth-bench $(BUILD)/tests/bench/tools/stamp

.PHONY: all tests deps check mutate prove faults faults-slice fuzz fuzzers demo lint clean
all: $(PROGRAMS)
tests: $(TESTS) $(SCRIPTS) $(TOOLS) $(FAULTS) $(BENCH)

$(BUILD)/berthd: $(BUILD)/daemon/main.o $(DAEMON) $(STORE) $(CONF) $(BASE)
$(BUILD)/berth-runner: $(BUILD)/runner/main.o $(RUNNER) $(CONF) $(BASE)
$(BUILD)/berth: $(BUILD)/cli/main.o $(CLI) $(CONF) $(BASE)
$(BASE): $(call objects,base)
$(CONF): $(call objects,conf)
$(STORE): $(call objects,store)
$(DAEMON): $(call objects,daemon)
$(RUNNER): $(call objects,runner)
$(CLI): $(call objects,cli)
$(HARNESS): $(filter-out %/play.o,$(call objects,tests/harness))
$(MODEL): $(filter-out $(BUILD)/tests/model/test-%,$(call objects,tests/model))
$(FAULT_PARTS): $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/faults/test-%.c,$(wildcard tests/faults/*.c)))

$(PROGRAMS):
	@echo "  LD      $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(TESTS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(MODEL) $(HARNESS) $(CLI) $(RUNNER) $(DAEMON) $(STORE) $(CONF) $(BASE)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(findstring -wrap,$@),$(shell sed -n 's|^/\* wrap: \(.*\) \*/|\1|p' tests/$*.c)) -o $@ \
		$(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lcunit
# The played runner and guards stand before the real ones, so only who asks for them gets them.
$(patsubst tests/%.c,$(BUILD)/tests/%,$(shell grep -l '"tests/harness/play.h"' $(TEST_FILES))): $(BUILD)/tests/harness/play.o

$(FAULTS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(FAULT_PARTS) $(HARNESS) $(CLI) $(DAEMON) $(STORE) $(CONF) $(BASE)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lcunit

$(BUILD)/tests/fuzz/fuzz-redis: $(BUILD)/tests/harness/redis-peer.o
$(FUZZERS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(CLI) $(RUNNER) $(DAEMON) $(STORE) $(CONF) $(BASE)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# For redis-server, which knows nothing of sanitizers.
$(BUILD)/tests/preload/%.so: tests/preload/%.c
	@echo "  LD      $@"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SANITIZE),$(ALL_CFLAGS)) -fPIC -shared $(LDFLAGS) -o $@ $<

$(filter-out %.so,$(TOOLS)): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(BASE)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^

$(SCRIPTS): $(BUILD)/tests/%: tests/%.sh
	$(Q)install -D -m 0755 $< $@

$(BUILD)/tests/bench/berth-bench: $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/*.c)) $(HARNESS) $(DAEMON) $(STORE) $(CONF) $(BASE)
	@echo "  LD      $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) -lm

$(BUILD)/tests/bench/tools/stamp: $(BUILD)/tests/bench/tools/stamp.o
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^

%.a:
	@echo "  AR      $@"
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@ && ar qcsD $@ $^ # q: files of two folders may have one name

$(BUILD)/%.o: %.c
	@echo "  CC      $<"
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Texts that are compiled in: each becomes a C string literal to #include.
GENERATED := $(patsubst %,$(BUILD)/generated/%.inc,$(shell grep -l '^#!lua' store/redis/lua/*.lua) $(wildcard daemon/api/*.varlink))
$(call objects,store) $(call objects,daemon): | $(GENERATED)
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

# Faults alone and mixed, some minutes; doc/faults.md tells what came of it. make faults SEED=n MIXES=n JOBS=n
SEED ?= 1
MIXES ?= 20
JOBS ?= 4
RESTARTS ?= 20
WITH_FAILPOINTS = BUILD=build/failpoints CPPFLAGS="$(CPPFLAGS) -DBERTH_FAILPOINTS"
faults: deps
	@$(MAKE) --no-print-directory $(WITH_FAILPOINTS) all tests
	@RESTARTS=$(RESTARTS) BERTH_BUILD=build/failpoints tests/faults/run.sh --failpoints --seed $(SEED) --mixes $(MIXES) --jobs $(JOBS) \
		--report doc/faults.md

# A minute or two of it: each fault once, a few mixes. They mostly wait, so that more of them run at once.
SLICE_JOBS ?= 12
faults-slice: deps
	@$(MAKE) --no-print-directory all tests
	@RESTARTS=5 BERTH_BUILD=$(BUILD) tests/faults/run.sh --slice --seed $(SEED) --mixes 4 --jobs $(SLICE_JOBS)

# Breaks berth in each way that tests/mutations lists: do the end-to-end tests notice? make mutate ONLY="words" JOBS=n
mutate: deps
	@JOBS=$(JOBS) tests/mutate.sh $(ONLY)

# Every state of a model of the permit protocol, in Promela for spin: make prove ONLY="words"
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

lint: export LINT_FLAGS = $(ALL_CFLAGS)
lint: $(GENERATED)
	@LINT_DEPS=yes tests/deps.sh
	@tests/lint.sh

include packaging/packaging.mk

clean:
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' -type f 2>/dev/null)
.SECONDARY:
