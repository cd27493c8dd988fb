# SPDX-License-Identifier: MIT
# Installing and packaging: `make install`, `make man`, `make deb`, `make rpm`, `make check-system`. Included by the Makefile.

MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
PRESETDIR ?= $(PREFIX)/lib/systemd/system-preset
CATALOGDIR ?= $(PREFIX)/lib/systemd/catalog
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
HOOKSDIR ?= $(PREFIX)/share/berth/hooks
MONITORINGDIR ?= $(PREFIX)/share/berth
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
INSTALL ?= install

UNITS := $(patsubst units/%.in,$(BUILD)/units/%,$(wildcard units/*.in)) $(wildcard units/*.slice units/*.socket units/*.timer)
MANPAGES := $(patsubst packaging/man/%.scd,$(BUILD)/man/%,$(wildcard packaging/man/*.scd))
WEB_UNITS := $(patsubst web/%.in,$(BUILD)/web/%,$(wildcard web/units/*.in)) $(wildcard web/units/*.socket)
WEB_DOCDIR ?= $(patsubst %/berth,%/berth-web,$(DOCDIR))
# The date in man pages is that of the last commit, so that each build gives the same (reproducible-builds.org).
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y NEWS.md)

.PHONY: man units install install-web install-programs install-units install-man install-completions install-hooks install-monitoring install-config deb rpm check-system

units: $(UNITS) $(WEB_UNITS)
$(BUILD)/units/%: units/%.in
	@echo "  GEN     $@"
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@LIBEXECDIR@|$(LIBEXECDIR)|g' $< >$@
$(BUILD)/web/units/%: web/units/%.in
	@echo "  GEN     $@"
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@LIBEXECDIR@|$(LIBEXECDIR)|g' $< >$@

man: $(MANPAGES)
$(BUILD)/man/%: packaging/man/%.scd packaging/man/events.awk packaging/man/metrics.awk base/journal/events.def base/metrics.def
	@echo "  MAN     $@"
	$(Q)mkdir -p $(@D)
	$(Q)awk -f packaging/man/events.awk base/journal/events.def $< | awk -f packaging/man/metrics.awk base/metrics.def - | SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) scdoc >$@.tmp && mv $@.tmp $@

install: install-programs install-units install-man install-completions install-hooks install-monitoring install-config

install-programs: all
	$(INSTALL) -D -m 0755 $(BUILD)/berthd $(DESTDIR)$(SBINDIR)/berthd
	$(INSTALL) -D -m 0755 $(BUILD)/berth $(DESTDIR)$(BINDIR)/berth
	$(INSTALL) -D -m 0755 $(BUILD)/berth-runner $(DESTDIR)$(LIBEXECDIR)/berth-runner
	$(INSTALL) -D -m 0755 $(BUILD)/berth-verbs $(DESTDIR)$(LIBEXECDIR)/berth-verbs
	$(INSTALL) -D -m 0755 units/berthd-stop.sh $(DESTDIR)$(LIBEXECDIR)/berthd-stop

install-units: $(UNITS)
	for u in $(UNITS); do $(INSTALL) -D -m 0644 $$u $(DESTDIR)$(UNITDIR)/$${u##*/} || exit; done
	$(INSTALL) -D -m 0644 units/berth.preset $(DESTDIR)$(PRESETDIR)/80-berth.preset
	$(INSTALL) -D -m 0644 units/berth.catalog $(DESTDIR)$(CATALOGDIR)/berth.catalog
	$(INSTALL) -D -m 0644 units/berth.sysusers $(DESTDIR)$(SYSUSERSDIR)/berth.conf
	$(INSTALL) -D -m 0644 units/berth.tmpfiles $(DESTDIR)$(TMPFILESDIR)/berth.conf

install-man: $(MANPAGES)
	for m in $(filter-out %/berth-web.8,$(MANPAGES)); do $(INSTALL) -D -m 0644 $$m $(DESTDIR)$(MANDIR)/man$${m##*.}/$${m##*/} || exit; done

# The live page is a package of its own.
install-web: all $(WEB_UNITS) $(BUILD)/man/berth-web.8
	$(INSTALL) -D -m 0755 $(BUILD)/berth-web $(DESTDIR)$(BINDIR)/berth-web
	for u in $(WEB_UNITS); do $(INSTALL) -D -m 0644 $$u $(DESTDIR)$(UNITDIR)/$${u##*/} || exit; done
	$(INSTALL) -D -m 0644 $(BUILD)/man/berth-web.8 $(DESTDIR)$(MANDIR)/man8/berth-web.8
	$(INSTALL) -D -m 0644 packaging/completions/berth-web.bash $(DESTDIR)$(BASHDIR)/berth-web
	$(INSTALL) -D -m 0644 packaging/completions/_berth-web $(DESTDIR)$(ZSHDIR)/_berth-web
	$(INSTALL) -D -m 0644 packaging/completions/berth-web.fish $(DESTDIR)$(FISHDIR)/berth-web.fish
	for f in web/proxy/*; do $(INSTALL) -D -m 0644 $$f $(DESTDIR)$(WEB_DOCDIR)/examples/$${f##*/} || exit; done

install-completions:
	$(INSTALL) -D -m 0644 packaging/completions/berth.bash $(DESTDIR)$(BASHDIR)/berth
	$(INSTALL) -D -m 0644 packaging/completions/_berth $(DESTDIR)$(ZSHDIR)/_berth
	$(INSTALL) -D -m 0644 packaging/completions/berth.fish $(DESTDIR)$(FISHDIR)/berth.fish

install-hooks:
	for h in conf/examples/hooks/*.sh; do $(INSTALL) -D -m 0755 $$h $(DESTDIR)$(HOOKSDIR)/$${h##*/} || exit; done

install-monitoring:
	for f in prometheus/berth.rules.yml prometheus/berth.rules-test.yml grafana/berth.json; do $(INSTALL) -D -m 0644 packaging/$$f $(DESTDIR)$(MONITORINGDIR)/$$f || exit; done

# An existing config belongs to the administrator.
install-config:
	[ -e $(DESTDIR)$(SYSCONFDIR)/berth/berth.conf ] || \
		$(INSTALL) -D -m 0644 conf/berth.conf $(DESTDIR)$(SYSCONFDIR)/berth/berth.conf
	$(INSTALL) -d -m 0755 $(DESTDIR)$(SYSCONFDIR)/berth/berth.conf.d
	$(INSTALL) -D -m 0644 conf/berth.conf $(DESTDIR)$(DOCDIR)/berth.conf
	$(INSTALL) -D -m 0644 packaging/redis.acl $(DESTDIR)$(DOCDIR)/redis.acl
	for f in conf/examples/*.conf conf/examples/systemd/*; do $(INSTALL) -D -m 0644 $$f $(DESTDIR)$(DOCDIR)/examples/$${f##*/} || exit; done
	for f in README.md NEWS.md doc/tour.md doc/protocol.md doc/bench.md doc/faults.md doc/demo.svg doc/page.webp doc/pools.svg; do $(INSTALL) -D -m 0644 $$f $(DESTDIR)$(DOCDIR)/$$f || exit; done

# Packages are built from the committed files, outside the tree: build/deb/*.deb, build/rpm/*.rpm.
deb:
	@PACKAGE=deb tests/deps.sh
	@packaging/build-deb.sh $(VERSION) $(CURDIR)/build/deb
rpm:
	@PACKAGE=rpm tests/deps.sh
	@packaging/build-rpm.sh $(VERSION) $(CURDIR)/build/rpm

check-system:
	@[ "$$(id -u)" -ne 0 ] || SYSTEM_DEPS=yes tests/deps.sh
	@tests/system/check-system.sh
