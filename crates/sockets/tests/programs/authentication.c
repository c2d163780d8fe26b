/* Authenticated chunks (RFC 4895; RFC 6458, 8.3). */
#include "common.h"

static void key(int fd, uint16_t number, const char *text, int active)
{
	union {
		struct sctp_authkey request;
		char bytes[sizeof(struct sctp_authkey) + 20];
	} all = { .request = { .sca_keynumber = number, .sca_keylength = strlen(text) } };
	struct sctp_authkeyid id = { .scact_keynumber = number };
	socklen_t length = sizeof id;

	memcpy(all.bytes + sizeof(struct sctp_authkey), text, strlen(text));
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_AUTH_KEY, &all, sizeof(struct sctp_authkey) + strlen(text)) == 0);
	if (!active)
		return;
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id) == 0);
	id.scact_keynumber = 0;
	CHECK(getsockopt(fd, SOL_SCTP, SCTP_AUTH_ACTIVE_KEY, &id, &length) == 0);
	CHECK(id.scact_keynumber == number);
}

static int offering(const char *secret)
{
	struct sctp_assoc_value wanted = { 0, 1 };
	struct sctp_authchunk data = { .sauth_chunk = 0 }, init = { .sauth_chunk = 1 };
	struct sctp_authkeyid unknown = { .scact_keynumber = 99 };
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	CHECK(fd >= 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_AUTH_SUPPORTED, &wanted, sizeof wanted) == 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_AUTH_CHUNK, &data, sizeof data) == 0);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_AUTH_CHUNK, &init, sizeof init), EINVAL);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_AUTH_ACTIVE_KEY, &unknown, sizeof unknown), EINVAL);
	FAILS(setsockopt(fd, SOL_SCTP, SCTP_AUTH_DELETE_KEY, &unknown, sizeof unknown), EINVAL);
	key(fd, 5, secret, 1);
	return fd;
}

static void hear(int to)
{
	char got[10];

	await(to, POLLIN);
	CHECK(recv(to, got, sizeof got, 0) == 5 && memcmp(got, "words", 5) == 0);
}

static void talk(int from, int to)
{
	CHECK(send(from, "words", 5, 0) == 5);
	hear(to);
}

/* Subscribes to what is told of keys. */
static void subscribe(int fd)
{
	struct sctp_event event = { .se_type = SCTP_AUTHENTICATION_EVENT, .se_on = 1 };

	CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
}

/* The next thing to read is a notification about this key. */
static void told(int fd, uint16_t number, uint32_t indication)
{
	union sctp_notification got;
	struct iovec vector = { &got, sizeof got };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };

	await(fd, POLLIN);
	CHECK(recvmsg(fd, &header, 0) == sizeof got.sn_authkey_event && (header.msg_flags & MSG_NOTIFICATION));
	CHECK(got.sn_header.sn_type == SCTP_AUTHENTICATION_EVENT);
	CHECK(got.sn_authkey_event.auth_keynumber == number);
	CHECK(got.sn_authkey_event.auth_indication == indication);
}

int main(void)
{
	struct sockaddr_in server = loopback(0);
	socklen_t length = sizeof server;
	struct sctp_assoc_value agreed = { 0, 9 };
	struct sctp_authkeyid old = { .scact_keynumber = 5 }, new = { .scact_keynumber = 6 };
	socklen_t agreed_length = sizeof agreed;
	int listening = offering("a secret"), client = offering("a secret"), accepted;
	struct pollfd silent = { .events = POLLIN };
	struct linger at_once = { .l_onoff = 1, .l_linger = 0 };

	CHECK(bind(listening, SA(server), sizeof server) == 0);
	CHECK(listen(listening, 8) == 0);
	CHECK(getsockname(listening, SA(server), &length) == 0);
	CHECK(connect(client, SA(server), sizeof server) == 0);
	await(listening, POLLIN);
	accepted = accept(listening, NULL, NULL);
	CHECK(accepted >= 0);
	CHECK(getsockopt(client, SOL_SCTP, SCTP_AUTH_SUPPORTED, &agreed, &agreed_length) == 0);
	CHECK(agreed.assoc_value == 1);
	talk(client, accepted);
	talk(accepted, client);
	subscribe(client);
	subscribe(accepted);
	/* Another secret while the association is used; the receiver has it first. */
	key(accepted, 6, "another", 0);
	key(client, 6, "another", 1);
	/* Packets are authenticated when they are sent, so the old one is free at once. */
	FAILS(setsockopt(client, SOL_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &new, sizeof new), EINVAL);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &old, sizeof old) == 0);
	told(client, 5, SCTP_AUTH_FREE_KEY);
	FAILS(setsockopt(client, SOL_SCTP, SCTP_AUTH_ACTIVE_KEY, &old, sizeof old), EINVAL);
	/* The peer still sends with it. */
	talk(accepted, client);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_AUTH_DELETE_KEY, &old, sizeof old) == 0);
	CHECK(send(client, "words", 5, 0) == 5);
	told(accepted, 6, SCTP_AUTH_NEW_KEY);
	hear(accepted);
	/* What the peer cannot verify does not arrive. */
	key(client, 7, "unknown to the peer", 1);
	CHECK(send(client, "words", 5, 0) == 5);
	silent.fd = accepted;
	CHECK(poll(&silent, 1, 300) == 0);
	/* It would wait for the acknowledgement. */
	CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
	CHECK(close(client) == 0);
	puts("done");
	return 0;
}
