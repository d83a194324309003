# SPDX-License-Identifier: MIT
# The program `lapse`, and the examples.

TOOL_C := $(wildcard tools/lapse/*.c tools/lapse/*/*.c)
TOOL_O := $(TOOL_C:%.c=$(OBJ)/%.o)

# The program knows where its redis.conf was installed, so another PREFIX makes another program.
$(BUILD)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX) $(LIBDIR)' | cmp -s - $@ || echo '$(PREFIX) $(LIBDIR)' > $@

$(BUILD)/lapse: $(TOOL_O) $(BUILD)/liblapse.a
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)
$(BUILD)/examples/%: $(OBJ)/tools/examples/%.o $(BUILD)/liblapse.a
	@mkdir -p $(@D)
	$(call say,LD)$(LINK) -o $@ $^ $(LIBS)
