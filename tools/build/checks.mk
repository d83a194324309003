# SPDX-License-Identifier: MIT
# Lint, layout, and the tables of the documents.

lint:  ## install what is missing, and run the static checks; CHECK='lua man' picks some
	@$(DEPS) build run test lint
	$(again) all $(BUILD)/tables
	+@tools/lint/lint.sh $(BUILD) $(CHECK)
fmt:  ## format the C files (lapse.h is formatted by hand)
	clang-format -i $$(git ls-files '*.c' '*.h' ':!include')
doc: $(BUILD)/tables $(LUA_OUT)  ## write the tables and programs that the documents and manual pages take from the code
	tools/build/doc.sh $(BUILD)
demo-svg: all  ## draw tools/doc/demo.svg, the picture of README.md, from a run of the demo; needs python3
	tools/build/demo_svg.py tools/build/demo.sh > $(BUILD)/demo.svg && mv $(BUILD)/demo.svg tools/doc/demo.svg
$(OBJ)/tools/build/tables.o: tools/build/tables.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) -Isrc $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tables: $(OBJ)/tools/build/tables.o $(LIB_O)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)

.PHONY: lint fmt doc demo-svg
