# SPDX-License-Identifier: MIT
# cancel, reschedule, schedule: a job may be taken from its holder
s/return set == RUN and score > now_ms/return false/
