/* Addresses that come and go while an association is used (RFC 5061; RFC 6458, 6.1.2, 8.1.10, 9.1). */
#include "common.h"

static struct sockaddr_in on(uint32_t last, int port)
{
	struct sockaddr_in address = loopback(port);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last);
	return address;
}

/* SCTP_AUTO_ASCONF: only sockets that are bound to no address follow those of interfaces. */
static void following(void)
{
	struct sockaddr_in address = on(1, 0);
	struct sctp_assoc_value offered = { 0, 9 };
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), value = 9;
	socklen_t length = sizeof value, long_length = sizeof offered;

	CHECK(getsockopt(fd, SOL_SCTP, SCTP_AUTO_ASCONF, &value, &length) == 0 && value == 0);
	value = 1;
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_AUTO_ASCONF, &value, sizeof value) == 0);
	value = 9;
	CHECK(getsockopt(fd, SOL_SCTP, SCTP_AUTO_ASCONF, &value, &length) == 0 && value == 1);
	/* It needs ASCONF. */
	CHECK(getsockopt(fd, SOL_SCTP, SCTP_ASCONF_SUPPORTED, &offered, &long_length) == 0);
	CHECK(offered.assoc_value == 1);
	CHECK(close(fd) == 0);
	fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(bind(fd, SA(address), sizeof address) == 0);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_AUTO_ASCONF, &value, sizeof value), EINVAL);
	value = 0;
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_AUTO_ASCONF, &value, sizeof value) == 0);
	CHECK(close(fd) == 0);
}

static int offering(void)
{
	struct sctp_assoc_value wanted = { 0, 1 };
	struct sctp_event event = { .se_type = SCTP_PEER_ADDR_CHANGE, .se_on = 1 };
	socklen_t length = sizeof wanted;
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_ASCONF_SUPPORTED, &wanted, sizeof wanted) == 0);
	wanted.assoc_value = 9;
	CHECK(getsockopt(fd, SOL_SCTP, SCTP_ASCONF_SUPPORTED, &wanted, &length) == 0);
	CHECK(wanted.assoc_value == 1);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
	return fd;
}

/* Waits for a notification that the peer's address is in this state; others are passed over. */
static void told(int fd, struct sockaddr_in address, int state)
{
	for (;;) {
		struct sctp_paddr_change change = { 0 };
		struct iovec vector = { &change, sizeof change };
		struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };
		struct sockaddr_in *about = (struct sockaddr_in *)&change.spc_aaddr;

		await(fd, POLLIN);
		CHECK(recvmsg(fd, &header, 0) == sizeof change && (header.msg_flags & MSG_NOTIFICATION));
		CHECK(change.spc_type == SCTP_PEER_ADDR_CHANGE);
		if (change.spc_state != state)
			continue;
		CHECK(about->sin_addr.s_addr == address.sin_addr.s_addr);
		return;
	}
}

static void talk(int from, int to)
{
	char got[10];

	CHECK(send(from, "words", 5, 0) == 5);
	for (;;) {
		struct iovec vector = { got, sizeof got };
		struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };
		ssize_t length;

		await(to, POLLIN);
		length = recvmsg(to, &header, 0);
		CHECK(length > 0);
		if (header.msg_flags & MSG_NOTIFICATION) {
			/* The rest of a long notification comes with the next call. */
			continue;
		}
		CHECK(length == 5 && memcmp(got, "words", 5) == 0);
		return;
	}
}

/* A socket that listens and has no association gets and loses addresses: no peer has to be told. */
static void of_a_listener(int type)
{
	struct sockaddr_in first = on(1, 0), second = on(2, 0), *shown;
	socklen_t length = sizeof first;
	int server = socket(AF_INET, type, IPPROTO_SCTP), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sockaddr *all;

	CHECK(bind(server, SA(first), sizeof first) == 0 && listen(server, 8) == 0);
	CHECK(getsockname(server, SA(first), &length) == 0);
	second.sin_port = first.sin_port;
	CHECK(sctp_bindx(server, SA(second), 1, SCTP_BINDX_ADD_ADDR) == 0);
	CHECK(sctp_getladdrs(server, 0, &all) == 2);
	sctp_freeladdrs(all);
	CHECK(sctp_bindx(server, SA(first), 1, SCTP_BINDX_REM_ADDR) == 0);
	CHECK(sctp_getladdrs(server, 0, &all) == 1);
	shown = (struct sockaddr_in *)all;
	CHECK(shown->sin_addr.s_addr == second.sin_addr.s_addr);
	sctp_freeladdrs(all);
	FAILS(sctp_bindx(server, SA(second), 1, SCTP_BINDX_REM_ADDR), EINVAL);
	CHECK(connect(client, SA(second), sizeof second) == 0);
	await(server, POLLIN);
	close(client);
	close(server);
}

int main(void)
{
	struct sockaddr_in first = on(1, 0), second = on(2, 0), server = on(1, 0);
	struct sctp_setpeerprim primary = { 0 };
	socklen_t length = sizeof server;
	int listening = offering(), client = offering(), accepted, plain[2];

	following();
	of_a_listener(SOCK_STREAM);
	CHECK(bind(listening, SA(server), sizeof server) == 0);
	CHECK(listen(listening, 8) == 0);
	CHECK(getsockname(listening, SA(server), &length) == 0);
	CHECK(bind(client, SA(first), sizeof first) == 0);
	CHECK(connect(client, SA(server), sizeof server) == 0);
	await(listening, POLLIN);
	accepted = accept(listening, NULL, NULL);
	CHECK(accepted >= 0);

	CHECK(sctp_bindx(client, SA(second), 1, SCTP_BINDX_ADD_ADDR) == 0);
	told(accepted, second, SCTP_ADDR_ADDED);
	told(accepted, second, SCTP_ADDR_CONFIRMED);
	memcpy(&primary.sspp_addr, &second, sizeof second);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &primary, sizeof primary) == 0);
	told(accepted, second, SCTP_ADDR_MADE_PRIM);
	/* Port 0 is that of the socket, and another one is none of it. */
	first.sin_port = htons(ntohs(second.sin_port) + 7);
	FAILS(sctp_bindx(client, SA(first), 1, SCTP_BINDX_REM_ADDR), EINVAL);
	first.sin_port = 0;
	CHECK(sctp_bindx(client, SA(first), 1, SCTP_BINDX_REM_ADDR) == 0);
	told(accepted, first, SCTP_ADDR_REMOVED);
	talk(client, accepted);
	talk(accepted, client);
	/* One address must stay, and it must be one of the socket. */
	FAILS(sctp_bindx(client, SA(second), 1, SCTP_BINDX_REM_ADDR), EINVAL);
	FAILS(sctp_bindx(client, SA(first), 1, SCTP_BINDX_REM_ADDR), EINVAL);

	/* Without it, the peer cannot be told. */
	connected(plain);
	FAILS(sctp_bindx(plain[0], SA(second), 1, SCTP_BINDX_ADD_ADDR), EOPNOTSUPP);
	FAILS(setsockopt(plain[0], SOL_SCTP, SCTP_SET_PEER_PRIMARY_ADDR, &primary, sizeof primary), EOPNOTSUPP);
	puts("done");
	return 0;
}
