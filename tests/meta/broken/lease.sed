# SPDX-License-Identifier: MIT
# sweep: takes jobs back from leases that still run
s/call('ZRANGEBYSCORE', RUN, '-inf', now_ms,/call('ZRANGEBYSCORE', RUN, '-inf', '+inf',/
