# SPDX-License-Identifier: MIT
# Installing and uninstalling.

MAN         := lapse.1 lapse.3 lapse_sync.3 $(if $(WITH_CRON),lapse_cron.3) lapse-protocol.7
PC          := lapse.pc lapse-sync.pc $(if $(WITH_CRON),lapse-cron.pc)
INSTALLED_H := lapse.h lapse_sync.h $(if $(WITH_CRON),lapse_cron.h)
$(PC:%=$(BUILD)/%): $(BUILD)/%.pc: tools/build/%.pc.in include/lapse.h $(BUILD)/prefix
	$(call say,GEN)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@TLS@|$(if $(WITH_TLS), hiredis_ssl openssl)|' \
	    $< > $@.part && mv $@.part $@

SHARE := $(PREFIX)/share
INSTALLED = $(INSTALLED_H:%=$(PREFIX)/include/%) $(foreach l,$(LIBRARIES),$(addprefix $(LIBDIR)/$l,.a .so.0 .so)) \
    $(PC:%=$(LIBDIR)/pkgconfig/%) $(PREFIX)/bin/lapse $(SHARE)/lapse/redis.conf \
    $(foreach m,$(MAN),$(SHARE)/man/man$(subst .,,$(suffix $(m)))/$(m)) \
    $(EXAMPLES:%=$(SHARE)/doc/lapse/examples/%.c) $(SHARE)/doc/lapse/examples/client.js
install: all $(PC:%=$(BUILD)/%)  ## build and install; PREFIX (/usr/local), LIBDIR and DESTDIR say where
	for h in $(INSTALLED_H); do install -Dm644 include/$$h $(DESTDIR)$(PREFIX)/include/$$h || exit 1; done
	for l in $(LIBRARIES); do \
	    install -Dm644 $(BUILD)/$$l.a $(DESTDIR)$(LIBDIR)/$$l.a && \
	    install -Dm644 $(BUILD)/$$l.so.0 $(DESTDIR)$(LIBDIR)/$$l.so.0 && \
	    ln -sf $$l.so.0 $(DESTDIR)$(LIBDIR)/$$l.so || exit 1; done
	for p in $(PC); do install -Dm644 $(BUILD)/$$p $(DESTDIR)$(LIBDIR)/pkgconfig/$$p || exit 1; done
	install -Dm755 $(BUILD)/lapse $(DESTDIR)$(PREFIX)/bin/lapse
	install -Dm644 redis.conf $(DESTDIR)$(SHARE)/lapse/redis.conf
	for m in $(MAN); do install -Dm644 tools/man/$$m $(DESTDIR)$(SHARE)/man/man$${m##*.}/$$m || exit 1; done
	for e in $(EXAMPLES:%=%.c) client.js; do \
	    install -Dm644 tools/examples/$$e $(DESTDIR)$(SHARE)/doc/lapse/examples/$$e || exit 1; done
uninstall:  ## remove what install installed; needs the same PREFIX, LIBDIR and DESTDIR
	rm -f $(INSTALLED:%=$(DESTDIR)%)
	-rmdir $(DESTDIR)$(SHARE)/lapse $(DESTDIR)$(SHARE)/doc/lapse/examples $(DESTDIR)$(SHARE)/doc/lapse

.PHONY: install uninstall
