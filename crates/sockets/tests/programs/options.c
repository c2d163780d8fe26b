/* Options of sockets and associations. */
#include "common.h"

static void set(int fd, int name, const void *value, socklen_t length)
{
	CHECK(setsockopt(fd, SOL_SCTP, name, value, length) == 0);
}

static void get(int fd, int name, void *value, socklen_t length)
{
	socklen_t filled = length;
	CHECK(getsockopt(fd, SOL_SCTP, name, value, &filled) == 0);
	CHECK(filled == length);
}

static int number_of(int fd, int name)
{
	int value = -1;
	get(fd, name, &value, sizeof value);
	return value;
}

static void before_the_association(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), one = 1, kind = 0;
	socklen_t length = sizeof kind;
	CHECK(getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &length) == 0 && kind == SOCK_STREAM);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &kind, &length) == 0 && kind == IPPROTO_SCTP);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &kind, &length) == 0 && kind == AF_INET);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &kind, &length) == 0 && kind == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
	kind = 200000;
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kind, sizeof kind) == 0);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kind, &length) == 0 && kind == 400000);
	for (int i = 0; i < 2; i++) {
		int name = i ? SO_RCVBUF : SO_SNDBUF, least = i ? 2304 : 4608;

		for (int bytes = 0; bytes < 5000; bytes += 1000) {
			CHECK(setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof bytes) == 0);
			CHECK(getsockopt(fd, SOL_SOCKET, name, &kind, &length) == 0);
			CHECK(kind == (2 * bytes < least ? least : 2 * bytes));
		}
	}

	struct sctp_initmsg defaults = { 0 };
	get(fd, SCTP_INITMSG, &defaults, sizeof defaults);
	CHECK(defaults.sinit_max_attempts == 8 && defaults.sinit_max_init_timeo == 60000);
	struct sctp_initmsg init = { .sinit_num_ostreams = 5, .sinit_max_attempts = 3 };
	set(fd, SCTP_INITMSG, &init, sizeof init);
	memset(&init, 0, sizeof init);
	get(fd, SCTP_INITMSG, &init, sizeof init);
	CHECK(init.sinit_num_ostreams == 5 && init.sinit_max_attempts == 3 && init.sinit_max_instreams > 0);
	set(fd, SCTP_NODELAY, &one, sizeof one);
	CHECK(number_of(fd, SCTP_NODELAY) == 1);
	set(fd, SCTP_RECVRCVINFO, &one, sizeof one);
	CHECK(number_of(fd, SCTP_RECVRCVINFO) == 1 && number_of(fd, SCTP_RECVNXTINFO) == 0);

	struct sctp_rtoinfo rto = { .srto_initial = 500, .srto_max = 2000, .srto_min = 100 };
	set(fd, SCTP_RTOINFO, &rto, sizeof rto);
	rto = (struct sctp_rtoinfo){ .srto_min = 3000 };
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_RTOINFO, &rto, sizeof rto), EINVAL);
	get(fd, SCTP_RTOINFO, &rto, sizeof rto);
	CHECK(rto.srto_initial == 500 && rto.srto_max == 2000 && rto.srto_min == 100);
	struct sctp_assocparams association = { .sasoc_asocmaxrxt = 7, .sasoc_cookie_life = 30000 };
	set(fd, SCTP_ASSOCINFO, &association, sizeof association);
	get(fd, SCTP_ASSOCINFO, &association, sizeof association);
	CHECK(association.sasoc_asocmaxrxt == 7 && association.sasoc_cookie_life == 30000);
	struct sctp_sack_info sack = { .sack_delay = 50, .sack_freq = 3 };
	set(fd, SCTP_DELAYED_SACK, &sack, sizeof sack);
	get(fd, SCTP_DELAYED_SACK, &sack, sizeof sack);
	CHECK(sack.sack_delay == 50 && sack.sack_freq == 3);

	struct sctp_event event = { .se_type = SCTP_SHUTDOWN_EVENT, .se_on = 1 };
	set(fd, SCTP_EVENT, &event, sizeof event);
	event.se_on = 0;
	get(fd, SCTP_EVENT, &event, sizeof event);
	CHECK(event.se_on == 1);
	struct sctp_event_subscribe events = { 0 };
	get(fd, SCTP_EVENTS, &events, sizeof events);
	CHECK(events.sctp_shutdown_event == 1 && events.sctp_association_event == 0);

	struct sctp_assoc_value interleaving = { 0, 1 }, scheduler = { 0, SCTP_SS_PRIO };
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_INTERLEAVING_SUPPORTED, &interleaving, sizeof interleaving), EPERM);
	int level = 2;
	set(fd, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level);
	set(fd, SCTP_INTERLEAVING_SUPPORTED, &interleaving, sizeof interleaving);
	set(fd, SCTP_STREAM_SCHEDULER, &scheduler, sizeof scheduler);
	scheduler.assoc_value = 0;
	get(fd, SCTP_STREAM_SCHEDULER, &scheduler, sizeof scheduler);
	CHECK(scheduler.assoc_value == SCTP_SS_PRIO);
	scheduler.assoc_value = 99;
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_STREAM_SCHEDULER, &scheduler, sizeof scheduler), EINVAL);
	struct sctp_stream_value priority = { .stream_id = 3, .stream_value = 7 };
	set(fd, SCTP_STREAM_SCHEDULER_VALUE, &priority, sizeof priority);
	priority.stream_value = 0;
	get(fd, SCTP_STREAM_SCHEDULER_VALUE, &priority, sizeof priority);
	CHECK(priority.stream_value == 7);

	FAILS(setsockopt(fd, SOL_SCTP, SCTP_AUTH_KEY, &one, sizeof one), EINVAL);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_HMAC_IDENT, &one, sizeof one), EINVAL);
	struct sctp_assoc_value non_renegable = { 0, 9 };
	get(fd, SCTP_NRSACK_SUPPORTED, &non_renegable, sizeof non_renegable);
	CHECK(non_renegable.assoc_value == 0);
	set(fd, SCTP_NRSACK_SUPPORTED, &one, sizeof one);
	get(fd, SCTP_NRSACK_SUPPORTED, &non_renegable, sizeof non_renegable);
	CHECK(non_renegable.assoc_value == 1);

	FAILS(getsockopt(fd, SOL_SCTP, 4711, &one, &length), ENOPROTOOPT);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_INITMSG, &one, 2), EINVAL);
	FAILS(setsockopt(fd, IPPROTO_TCP, 1, &one, sizeof one), ENOPROTOOPT);
	struct sctp_status status = { 0 };
	length = sizeof status;
	FAILS(getsockopt(fd, SOL_SCTP, SCTP_STATUS, &status, &length), EINVAL);
	struct sockaddr_in foreign = loopback(0);
	foreign.sin_addr.s_addr = inet_addr("198.51.100.200");
	FAILS(bind(fd, SA(foreign), sizeof foreign), EADDRNOTAVAIL);
	close(fd);
}

static void of_an_association(void)
{
	struct sockaddr_in address;
	int server = listener(SOCK_STREAM, &address), one = 1;
	int client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sctp_initmsg init = { .sinit_num_ostreams = 5 };
	set(client, SCTP_INITMSG, &init, sizeof init);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	int far = accept(server, NULL, NULL);

	struct sctp_status status;
	socklen_t length = sizeof status;
	CHECK(sctp_opt_info(client, 0, SCTP_STATUS, &status, &length) == 0 && length == sizeof status);
	CHECK(status.sstat_state == SCTP_ESTABLISHED && status.sstat_outstrms == 5 && status.sstat_rwnd > 0);
	CHECK(status.sstat_fragmentation_point > 1000 && status.sstat_assoc_id > 2);
	struct sockaddr_in *primary = (struct sockaddr_in *)&status.sstat_primary.spinfo_address;
	CHECK(primary->sin_port == address.sin_port && primary->sin_addr.s_addr == address.sin_addr.s_addr);
	CHECK(status.sstat_primary.spinfo_state == SCTP_ACTIVE && status.sstat_primary.spinfo_cwnd > 0);
	CHECK(status.sstat_primary.spinfo_rto > 0 && status.sstat_primary.spinfo_mtu >= 1200);

	struct sockaddr *all = NULL;
	CHECK(sctp_getpaddrs(client, 0, &all) == 1);
	CHECK(((struct sockaddr_in *)all)->sin_port == address.sin_port);
	CHECK(sctp_freepaddrs(all) == 0);
	CHECK(sctp_getladdrs(far, 0, &all) == 1);
	CHECK(((struct sockaddr_in *)all)->sin_port == address.sin_port);
	CHECK(sctp_freeladdrs(all) == 0);

	struct sctp_paddrinfo path = { 0 };
	memcpy(&path.spinfo_address, &address, sizeof address);
	length = sizeof path;
	CHECK(getsockopt(client, SOL_SCTP, SCTP_GET_PEER_ADDR_INFO, &path, &length) == 0);
	CHECK(path.spinfo_state == SCTP_ACTIVE);
	struct sockaddr_in elsewhere = address;
	elsewhere.sin_port ^= 1;
	memcpy(&path.spinfo_address, &elsewhere, sizeof elsewhere);
	length = sizeof path;
	FAILS(getsockopt(client, SOL_SCTP, SCTP_GET_PEER_ADDR_INFO, &path, &length), EINVAL);
	struct sctp_prim prim = { 0 };
	memcpy(&prim.ssp_addr, &address, sizeof address);
	set(client, SCTP_PRIMARY_ADDR, &prim, sizeof prim);
	struct sctp_paddrparams params = { .spp_hbinterval = 1234, .spp_pathmaxrxt = 4, .spp_flags = SPP_HB_ENABLE };
	memcpy(&params.spp_address, &elsewhere, sizeof elsewhere);
	FAILS(setsockopt(client, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &params, sizeof params), EINVAL);
	memcpy(&params.spp_address, &address, sizeof address);
	set(client, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	/* A HEARTBEAT needs an association. */
	int alone = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sctp_paddrparams demand = { .spp_flags = SPP_HB_DEMAND };
	FAILS(setsockopt(alone, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &demand, sizeof demand), EINVAL);
	CHECK(close(alone) == 0);
	params.spp_hbinterval = 0;
	get(client, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	CHECK(params.spp_hbinterval == 1234 && (params.spp_flags & SPP_HB_ENABLE));
	params.spp_flags = SPP_HB;
	FAILS(setsockopt(client, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &params, sizeof params), EINVAL);

	static char bytes[20000];
	set(client, SCTP_DISABLE_FRAGMENTS, &one, sizeof one);
	FAILS(write(client, bytes, sizeof bytes), EMSGSIZE);
	CHECK(write(client, bytes, 100) == 100);
	FAILS(sctp_sendmsg(client, "x", 1, NULL, 0, 0, 0, 5, 0, 0), EINVAL);
	struct sctp_sndrcvinfo by_default = { .sinfo_stream = 3, .sinfo_ppid = htonl(77) };
	set(client, SCTP_DEFAULT_SEND_PARAM, &by_default, sizeof by_default);
	CHECK(write(client, "default", 7) == 7);
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
	set(far, SCTP_EVENTS, &events, sizeof events);
	struct sctp_sndrcvinfo info = { 0 };
	int flags = 0;
	CHECK(read(far, bytes, sizeof bytes) == 100);
	CHECK(sctp_recvmsg(far, bytes, sizeof bytes, NULL, NULL, &info, &flags) == 7);
	CHECK(info.sinfo_stream == 3 && info.sinfo_ppid == htonl(77) && (flags & MSG_EOR));
	struct linger soon = { 1, 5 };
	CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &soon, sizeof soon) == 0);
	close(client);
	close(far);
	close(server);
}

/* A short message on a stream of higher priority overtakes the rest of a long one, if both ends interleave. */
static void interleaved(int both)
{
	/* More than the receive buffer holds, and not more than it and the send buffer. */
	enum { LONG = 1000000, BUFFER = 100000 };
	static char bytes[LONG], into[LONG];
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	/* Listeners at one address have the options of the first. */
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + both);
	struct sctp_assoc_value interleaving = { 0, 1 }, non_renegable = { 0, 1 }, scheduler = { 0, SCTP_SS_PRIO };
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), level = 2;
	int client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), buffer = BUFFER;
	CHECK(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) == 0);
	for (int i = 0; i < 2; i++) {
		int fd = i ? server : client;
		set(fd, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level);
		if (both || !i) {
			set(fd, SCTP_INTERLEAVING_SUPPORTED, &interleaving, sizeof interleaving);
			set(fd, SCTP_NRSACK_SUPPORTED, &non_renegable, sizeof non_renegable);
		}
	}
	CHECK(bind(server, SA(address), sizeof address) == 0 && listen(server, 1) == 0);
	CHECK(getsockname(server, SA(address), &length) == 0);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	int far = accept(server, NULL, NULL);
	interleaving.assoc_value = 9;
	get(client, SCTP_INTERLEAVING_SUPPORTED, &interleaving, sizeof interleaving);
	CHECK(interleaving.assoc_value == (uint32_t)both);
	/* Only before the association, and true if both ends offer it. */
	FAILS(setsockopt(client, SOL_SCTP, SCTP_NRSACK_SUPPORTED, &non_renegable, sizeof non_renegable), EINVAL);
	non_renegable.assoc_value = 9;
	get(client, SCTP_NRSACK_SUPPORTED, &non_renegable, sizeof non_renegable);
	CHECK(non_renegable.assoc_value == (uint32_t)both);
	set(client, SCTP_STREAM_SCHEDULER, &scheduler, sizeof scheduler);
	struct sctp_stream_value priority = { .stream_id = 2, .stream_value = 1 };
	set(client, SCTP_STREAM_SCHEDULER_VALUE, &priority, sizeof priority);
	priority.stream_id = 4711;
	FAILS(setsockopt(client, SOL_SCTP, SCTP_STREAM_SCHEDULER_VALUE, &priority, sizeof priority), EINVAL);
	CHECK(sctp_sendmsg(client, bytes, LONG, NULL, 0, 0, 0, 1, 0, 0) == LONG);
	/* Parts of the long message have arrived: its sending has begun. */
	await(far, POLLIN);
	CHECK(sctp_sendmsg(client, "short", 5, NULL, 0, 0, 0, 2, 0, 0) == 5);
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
	set(far, SCTP_EVENTS, &events, sizeof events);
	size_t seen[3] = { 0 }, before = 0;
	while (seen[1] < LONG || !seen[2]) {
		struct sctp_sndrcvinfo info = { 0 };
		int flags = 0;
		int got = sctp_recvmsg(far, into, sizeof into, NULL, NULL, &info, &flags);
		CHECK(got > 0 && (info.sinfo_stream == 1 || info.sinfo_stream == 2));
		if (info.sinfo_stream == 2)
			before = seen[1];
		seen[info.sinfo_stream] += got;
	}
	CHECK(seen[1] == LONG && seen[2] == 5);
	CHECK(both ? before < LONG : before == LONG);
	close(client);
	close(far);
	close(server);
}

/* A part of an answer would be taken for the whole: the kernel refuses instead. Some structures have grown. */
static void short_answers(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	for (int name = 0; name < 140; name++) {
		char value[256] = { 0 };
		socklen_t length = 1;

		if (name == SCTP_EVENTS || name == SCTP_PEER_ADDR_PARAMS)
			continue;
		CHECK(getsockopt(fd, SOL_SCTP, name, value, &length) == -1);
		length = sizeof value;
		if (getsockopt(fd, SOL_SCTP, name, value, &length) == 0 && length > 0) {
			/* Some have a shorter form. */
			socklen_t asked = --length;
			CHECK(getsockopt(fd, SOL_SCTP, name, value, &length) == -1 || length < asked);
		}
	}
	close(fd);
}

/* Without path MTU discovery, associations have the path MTU that the program says (RFC 6458, 8.1.12). */
static void fixed_mtu(void)
{
	struct sctp_paddrparams wanted = { .spp_pathmtu = 1300, .spp_flags = SPP_PMTUD_DISABLE }, shown = { 0 };
	struct sctp_assoc_value reconfiguration = { 0, 0 };
	struct sctp_status status = { 0 };
	struct sockaddr_in address;
	int server = listener(SOCK_STREAM, &address), fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	get(fd, SCTP_RECONFIG_SUPPORTED, &reconfiguration, sizeof reconfiguration);
	CHECK(reconfiguration.assoc_value == 1);
	reconfiguration.assoc_value = 0;
	set(fd, SCTP_RECONFIG_SUPPORTED, &reconfiguration, sizeof reconfiguration);
	wanted.spp_pathmtu = 100;
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &wanted, sizeof wanted), EINVAL);
	wanted.spp_pathmtu = 1300;
	set(fd, SCTP_PEER_ADDR_PARAMS, &wanted, sizeof wanted);
	get(fd, SCTP_PEER_ADDR_PARAMS, &shown, sizeof shown);
	CHECK(shown.spp_pathmtu == 1300 && (shown.spp_flags & SPP_PMTUD_DISABLE) && !(shown.spp_flags & SPP_PMTUD_ENABLE));
	CHECK(connect(fd, SA(address), sizeof address) == 0);
	/* Discovery would find 9000 bytes over loopback. */
	usleep(200000);
	get(fd, SCTP_STATUS, &status, sizeof status);
	CHECK(status.sstat_fragmentation_point < 1300 && status.sstat_fragmentation_point > 1200);
	CHECK(status.sstat_primary.spinfo_mtu == 1300);
	/* It is accepted for an association in use, and changes nothing there. */
	wanted.spp_pathmtu = 1400;
	set(fd, SCTP_PEER_ADDR_PARAMS, &wanted, sizeof wanted);
	get(fd, SCTP_STATUS, &status, sizeof status);
	CHECK(status.sstat_primary.spinfo_mtu == 1300);
	close(fd);
	close(server);
}

/* The TOS byte of the first datagram that comes to a UDP socket. */
static int first_tos(int fd)
{
	char bytes[2000], control[64];
	struct iovec place = { bytes, sizeof bytes };
	struct msghdr message = {
		.msg_iov = &place, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control,
	};
	CHECK(recvmsg(fd, &message, 0) > 0);
	for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
		if (one->cmsg_level == IPPROTO_IP && one->cmsg_type == IP_TOS)
			return *(unsigned char *)CMSG_DATA(one);
	return -1;
}

/* The DSCP of packets, by the options of IP and of SCTP (RFC 6458, 8.1.12). The ECN field belongs to the transport. */
static void dscp(void)
{
	struct sockaddr_in address, seen = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof seen;
	int server = listener(SOCK_STREAM, &address), fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	int six = socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP), observer = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
	int class = 0x68 | 3;

	CHECK(setsockopt(six, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class) == 0);
	class = 256;
	FAILS(setsockopt(six, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class), EINVAL);
	CHECK(getsockopt(six, IPPROTO_IPV6, IPV6_TCLASS, &class, &(socklen_t){ sizeof class }) == 0 && class == 0x68);
	FAILS(setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class), ENOPROTOOPT);
	close(six);

	/* Nobody answers there, so that INITs are all that comes. */
	CHECK(bind(observer, SA(seen), sizeof seen) == 0 && getsockname(observer, SA(seen), &length) == 0);
	CHECK(setsockopt(observer, IPPROTO_IP, IP_RECVTOS, &one, sizeof one) == 0);
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
	struct sctp_udpencaps encapsulation = { .sue_port = seen.sin_port };
	set(silent, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation);
	class = 0xb8 | 1;
	CHECK(setsockopt(silent, IPPROTO_IP, IP_TOS, &class, sizeof class) == 0);
	FAILS(connect(silent, SA(address), sizeof address), EINPROGRESS);
	CHECK(first_tos(observer) == 0xb8);
	close(silent);
	close(observer);

	struct sctp_paddrparams params = { .spp_flags = SPP_DSCP, .spp_dscp = 0x68 }, shown = { 0 };
	set(fd, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	CHECK(getsockopt(fd, IPPROTO_IP, IP_TOS, &class, &(socklen_t){ sizeof class }) == 0 && class == 0x68);
	CHECK(connect(fd, SA(address), sizeof address) == 0);
	memcpy(&shown.spp_address, &address, sizeof address);
	get(fd, SCTP_PEER_ADDR_PARAMS, &shown, sizeof shown);
	CHECK((shown.spp_flags & SPP_DSCP) && shown.spp_dscp == 0x68);
	memcpy(&params.spp_address, &address, sizeof address);
	params.spp_dscp = 0x28;
	set(fd, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	get(fd, SCTP_PEER_ADDR_PARAMS, &shown, sizeof shown);
	CHECK(shown.spp_dscp == 0x28);
	CHECK(getsockopt(fd, IPPROTO_IP, IP_TOS, &class, &(socklen_t){ sizeof class }) == 0 && class == 0x68);
	class = 0;
	CHECK(setsockopt(fd, IPPROTO_IP, IP_TOS, &class, sizeof class) == 0);
	get(fd, SCTP_PEER_ADDR_PARAMS, &shown, sizeof shown);
	CHECK(shown.spp_dscp == 0);
	close(fd);
	close(server);
}

/* Parameters of one path are those of its address only (RFC 6458, 8.1.12; RFC 7829, 7.1). */
static void of_one_path(void)
{
	struct sockaddr_in addresses[2] = { loopback(0), loopback(0) };
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sctp_paddrparams params[2] = { 0 }, wanted = { .spp_pathmaxrxt = 2 };
	struct sctp_paddrthlds limits[2] = { 0 }, limit = { .spt_pathmaxrxt = 3, .spt_pathpfthld = 1 };
	socklen_t length = sizeof limit;

	addresses[1].sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	CHECK(bind(server, SA(addresses[0]), sizeof *addresses) == 0);
	CHECK(getsockname(server, SA(addresses[0]), &(socklen_t){ sizeof *addresses }) == 0);
	addresses[1].sin_port = addresses[0].sin_port;
	CHECK(sctp_bindx(server, SA(addresses[1]), 1, SCTP_BINDX_ADD_ADDR) == 0 && listen(server, 1) == 0);
	/* There is no path yet. */
	memcpy(&wanted.spp_address, &addresses[0], sizeof *addresses);
	memcpy(&limit.spt_address, &addresses[0], sizeof *addresses);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_PEER_ADDR_PARAMS, &wanted, sizeof wanted), EINVAL);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_PEER_ADDR_THLDS, &limit, sizeof limit), EINVAL);
	CHECK(sctp_connectx(fd, SA(addresses), 2, NULL) == 0);

	for (int i = 0; i < 2; i++) {
		memcpy(&params[i].spp_address, &addresses[i], sizeof *addresses);
		memcpy(&limits[i].spt_address, &addresses[i], sizeof *addresses);
	}
	set(fd, SCTP_PEER_ADDR_PARAMS, &wanted, sizeof wanted);
	for (int i = 0; i < 2; i++)
		get(fd, SCTP_PEER_ADDR_PARAMS, &params[i], sizeof *params);
	CHECK(params[0].spp_pathmaxrxt == 2 && params[1].spp_pathmaxrxt > 2);
	set(fd, SCTP_PEER_ADDR_THLDS, &limit, sizeof limit);
	for (int i = 0; i < 2; i++)
		get(fd, SCTP_PEER_ADDR_THLDS, &limits[i], sizeof *limits);
	CHECK(limits[0].spt_pathmaxrxt == 3 && limits[0].spt_pathpfthld == 1);
	CHECK(limits[1].spt_pathmaxrxt == params[1].spp_pathmaxrxt && limits[1].spt_pathpfthld != 1);
	/* Without an address, it is for all. */
	limit = (struct sctp_paddrthlds){ .spt_pathmaxrxt = 6, .spt_pathpfthld = 4 };
	set(fd, SCTP_PEER_ADDR_THLDS, &limit, sizeof limit);
	for (int i = 0; i < 2; i++) {
		get(fd, SCTP_PEER_ADDR_THLDS, &limits[i], sizeof *limits);
		CHECK(limits[i].spt_pathmaxrxt == 6 && limits[i].spt_pathpfthld == 4);
	}
	addresses[1].sin_addr.s_addr = htonl(INADDR_LOOPBACK + 7);
	memcpy(&limit.spt_address, &addresses[1], sizeof *addresses);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_PEER_ADDR_THLDS, &limit, sizeof limit), EINVAL);
	FAILS(getsockopt(fd, SOL_SCTP, SCTP_PEER_ADDR_THLDS, &limit, &length), EINVAL);
	close(fd);
	close(server);
}

static void check_delay(int fd, uint32_t delay, uint32_t every)
{
	struct sctp_paddrparams params = { 0 };
	struct sctp_sack_info info = { 0 };
	uint32_t flag = every == 1 ? SPP_SACKDELAY_DISABLE : SPP_SACKDELAY_ENABLE;

	get(fd, SCTP_DELAYED_SACK, &info, sizeof info);
	CHECK(info.sack_delay == delay && info.sack_freq == every);
	get(fd, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	CHECK((params.spp_flags & (SPP_SACKDELAY_ENABLE | SPP_SACKDELAY_DISABLE)) == flag);
}

/* The delay of SACKs is switched off and on by three options (RFC 6458, 8.1.12 and 8.1.19). */
static void delayed_sacks(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sctp_assoc_value delay = { 0, 100 };
	struct sctp_sack_info info = { .sack_freq = 1 };
	struct sctp_paddrparams params = { .spp_flags = SPP_SACKDELAY_DISABLE };

	set(fd, SCTP_DELAYED_SACK, &delay, sizeof delay);
	check_delay(fd, 100, 2);
	delay.assoc_value = 0;
	set(fd, SCTP_DELAYED_SACK, &delay, sizeof delay);
	check_delay(fd, 0, 1);
	delay.assoc_value = 80;
	set(fd, SCTP_DELAYED_SACK, &delay, sizeof delay);
	check_delay(fd, 80, 2);
	set(fd, SCTP_DELAYED_SACK, &info, sizeof info);
	check_delay(fd, 0, 1);
	info = (struct sctp_sack_info){ .sack_delay = 60 };
	set(fd, SCTP_DELAYED_SACK, &info, sizeof info);
	check_delay(fd, 60, 2);
	set(fd, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	check_delay(fd, 0, 1);
	params = (struct sctp_paddrparams){ .spp_flags = SPP_SACKDELAY_ENABLE, .spp_sackdelay = 90 };
	set(fd, SCTP_PEER_ADDR_PARAMS, &params, sizeof params);
	check_delay(fd, 90, 2);
	close(fd);
}

/* As in Linux: what fits into a packet of 512 B, up to the largest chunk. */
static void bounds_of_messages(void)
{
	int families[] = { AF_INET, AF_INET6 }, least[] = { 464, 444 };

	for (int i = 0; i < 2; i++) {
		int fd = socket(families[i], SOCK_STREAM, IPPROTO_SCTP), allowed[] = { 0, least[i], 500, 65516 };
		int refused[] = { 1, least[i] - 1, 65517 };
		for (int j = 0; j < 4; j++)
			set(fd, SCTP_MAXSEG, &allowed[j], sizeof(int));
		for (int j = 0; j < 3; j++)
			FAILS(setsockopt(fd, SOL_SCTP, SCTP_MAXSEG, &refused[j], sizeof(int)), EINVAL);
		close(fd);
	}
}

int main(void)
{
	bounds_of_messages();
	short_answers();
	of_one_path();
	delayed_sacks();
	fixed_mtu();
	dscp();
	interleaved(0);
	interleaved(1);
	before_the_association();
	of_an_association();
	puts("done");
	return 0;
}
