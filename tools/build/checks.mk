# SPDX-License-Identifier: MIT
# Lint, layout, and the tables of the documents.

lint:  ## install what is missing, and check layers, symbols, format, warnings, Lua, sizes; CHECK='lua man' picks some
	@$(DEPS) build run test lint
	$(again) all $(BUILD)/tables
	+@tools/lint/lint.sh $(BUILD) $(CHECK)
fmt:  ## lay out the C files; lapse.h is laid out by hand
	clang-format -i $$(git ls-files '*.c' '*.h' ':!include')
doc: $(BUILD)/tables $(LUA_OUT)  ## rewrite from the code what the documents show of it
	tools/build/doc.sh $(BUILD)
demo-svg: all  ## draw tools/doc/demo.svg, the picture of README.md, from a run of the demo; needs python3
	tools/build/demo_svg.py tools/build/demo.sh > $(BUILD)/demo.svg && mv $(BUILD)/demo.svg tools/doc/demo.svg
$(OBJ)/tools/build/tables.o: tools/build/tables.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(BASE) -Isrc $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/tables: $(OBJ)/tools/build/tables.o $(LIB_O)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)

.PHONY: lint fmt doc demo-svg
