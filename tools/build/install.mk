# SPDX-License-Identifier: MIT
# Installing and uninstalling.

MAN := lapse.1 lapse.3
$(BUILD)/lapse.pc: tools/build/lapse.pc.in include/lapse.h $(BUILD)/prefix
	$(call say,GEN)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    tools/build/lapse.pc.in > $@.part && mv $@.part $@

SHARE := $(PREFIX)/share
INSTALLED = $(PREFIX)/include/lapse.h $(LIBDIR)/liblapse.a $(LIBDIR)/liblapse.so.0 $(LIBDIR)/liblapse.so \
    $(LIBDIR)/pkgconfig/lapse.pc $(PREFIX)/bin/lapse $(SHARE)/lapse/redis.conf \
    $(foreach m,$(MAN),$(SHARE)/man/man$(subst .,,$(suffix $(m)))/$(m)) \
    $(EXAMPLES:%=$(SHARE)/doc/lapse/examples/%.c)
install: all $(BUILD)/lapse.pc  ## build and install; PREFIX (/usr/local), LIBDIR and DESTDIR say where
	install -Dm644 include/lapse.h $(DESTDIR)$(PREFIX)/include/lapse.h
	install -Dm644 $(BUILD)/liblapse.a $(DESTDIR)$(LIBDIR)/liblapse.a
	install -Dm644 $(BUILD)/liblapse.so.0 $(DESTDIR)$(LIBDIR)/liblapse.so.0
	ln -sf liblapse.so.0 $(DESTDIR)$(LIBDIR)/liblapse.so
	install -Dm644 $(BUILD)/lapse.pc $(DESTDIR)$(LIBDIR)/pkgconfig/lapse.pc
	install -Dm755 $(BUILD)/lapse $(DESTDIR)$(PREFIX)/bin/lapse
	install -Dm644 redis.conf $(DESTDIR)$(SHARE)/lapse/redis.conf
	for m in $(MAN); do install -Dm644 tools/man/$$m $(DESTDIR)$(SHARE)/man/man$${m##*.}/$$m || exit 1; done
	for e in $(EXAMPLES); do \
	    install -Dm644 tools/examples/$$e.c $(DESTDIR)$(SHARE)/doc/lapse/examples/$$e.c || exit 1; done
uninstall:  ## remove what install installed; needs the same PREFIX, LIBDIR and DESTDIR
	rm -f $(INSTALLED:%=$(DESTDIR)%)
	-rmdir $(DESTDIR)$(SHARE)/lapse $(DESTDIR)$(SHARE)/doc/lapse/examples $(DESTDIR)$(SHARE)/doc/lapse

.PHONY: install uninstall
