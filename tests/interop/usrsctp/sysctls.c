/* Settings of the stack that have no socket option, or whose default is easier to set for all. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usrsctp.h>

#define NAMES(X) \
	X(sctp_cmt_on_off) X(sctp_cmt_use_dac) X(sctp_buffer_splitting) X(sctp_nrsack_enable) \
	X(sctp_ecn_enable) X(sctp_pr_enable) X(sctp_auth_enable) X(sctp_asconf_enable) \
	X(sctp_reconfig_enable) X(sctp_pktdrop_enable) X(sctp_rto_min_default) \
	X(sctp_rto_max_default) X(sctp_rto_initial_default) X(sctp_init_rto_max_default) \
	X(sctp_init_rtx_max_default) X(sctp_assoc_rtx_max_default) X(sctp_path_rtx_max_default) \
	X(sctp_path_pf_threshold) X(sctp_heartbeat_interval_default) X(sctp_delayed_sack_time_default) \
	X(sctp_sack_freq_default) X(sctp_max_burst_default) X(sctp_initial_cwnd) \
	X(sctp_mbuf_threshold_count) X(sctp_valid_cookie_life_default) \
	X(sctp_blackhole) X(sctp_nr_incoming_streams_default) X(sctp_max_chunks_on_queue) X(sctp_default_cc_module)

#define ENTRY(name) { #name, usrsctp_sysctl_set_##name },
static const struct {
	const char *name;
	int (*set)(uint32_t);
} settings[] = { NAMES(ENTRY) };

#define WORD(name) #name " "

#define MAX_KEPT 32
static struct {
	int setting;
	uint32_t value;
} kept[MAX_KEPT];
static int kept_count;

bool keep_sysctl(const char *assignment)
{
	const char *equals = strchr(assignment, '=');

	if (equals == NULL || kept_count == MAX_KEPT)
		return false;
	for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		size_t length = strlen(settings[i].name);

		if (length == (size_t)(equals - assignment) && strncmp(assignment, settings[i].name, length) == 0) {
			kept[kept_count].setting = (int)i;
			kept[kept_count++].value = (uint32_t)strtoul(equals + 1, NULL, 10);
			return true;
		}
	}
	return false;
}

void apply_sysctls(void)
{
	for (int i = 0; i < kept_count; i++) {
		if (settings[kept[i].setting].set(kept[i].value) != 0) {
			fprintf(stderr, "usrsctp-peer: the stack refuses %s=%u\n", settings[kept[i].setting].name,
			        kept[i].value);
			exit(2);
		}
	}
}

const char *sysctl_names(void)
{
	return "name=value with one of " NAMES(WORD);
}
