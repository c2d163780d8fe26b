/* What ends say in the handshake about the layer above SCTP and about authentication, and associations that are idle (RFC 6458,
 * 6.1.6, 6.1.8, 8.1.8, 8.1.10, 8.1.13 and 8.3). */
#include "common.h"

static const int KINDS[] = { SCTP_ASSOC_CHANGE, SCTP_ADAPTATION_INDICATION, SCTP_AUTHENTICATION_EVENT };

static int subscribed(int type)
{
	int fd = socket(AF_INET, type, IPPROTO_SCTP);

	CHECK(fd >= 0);
	for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
		struct sctp_event event = { .se_type = KINDS[i], .se_on = 1 };
		CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
	}
	return fd;
}

/* Listens on a port of its own, at an address of its own: listeners at one address share the options of the first. */
static struct sockaddr_in listening(int fd, int last)
{
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x100 + last);
	CHECK(bind(fd, SA(address), sizeof address) == 0 && listen(fd, 8) == 0);
	CHECK(getsockname(fd, SA(address), &length) == 0);
	return address;
}

/* The next notification, of this type. */
static union sctp_notification next(int fd, int type)
{
	union sctp_notification got;
	struct iovec vector = { &got, sizeof got };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };

	await(fd, POLLIN);
	CHECK(recvmsg(fd, &header, 0) > 0 && (header.msg_flags & MSG_NOTIFICATION));
	CHECK(got.sn_header.sn_type == type);
	return got;
}

static void adaptation(void)
{
	int server = subscribed(SOCK_SEQPACKET), client = subscribed(SOCK_STREAM);
	struct sctp_setadaptation layer = { .ssb_adaptation_ind = 0x01020304 };
	struct sockaddr_in address;
	socklen_t length = sizeof layer;

	CHECK(getsockopt(client, SOL_SCTP, SCTP_ADAPTATION_LAYER, &layer, &length) == 0);
	CHECK(length == sizeof layer && layer.ssb_adaptation_ind == 0);
	layer.ssb_adaptation_ind = 0x01020304;
	CHECK(setsockopt(client, SOL_SCTP, SCTP_ADAPTATION_LAYER, &layer, sizeof layer) == 0);
	layer.ssb_adaptation_ind = 7;
	CHECK(setsockopt(server, SOL_SCTP, SCTP_ADAPTATION_LAYER, &layer, sizeof layer) == 0);
	address = listening(server, 1);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	CHECK(next(client, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state == SCTP_COMM_UP);
	CHECK(next(client, SCTP_ADAPTATION_INDICATION).sn_adaptation_event.sai_adaptation_ind == 7);
	CHECK(next(server, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state == SCTP_COMM_UP);
	CHECK(next(server, SCTP_ADAPTATION_INDICATION).sn_adaptation_event.sai_adaptation_ind == 0x01020304);
	CHECK(close(client) == 0);
	CHECK(close(server) == 0);
}

static void algorithms(int fd, const uint16_t *ids, uint32_t count, int error)
{
	struct {
		uint32_t count;
		uint16_t ids[4];
	} list = { .count = count };
	socklen_t length = sizeof list;

	memcpy(list.ids, ids, count * sizeof *ids);
	if (error) {
		FAILS(setsockopt(fd, SOL_SCTP, SCTP_HMAC_IDENT, &list, sizeof list), error);
		return;
	}
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_HMAC_IDENT, &list, sizeof list) == 0);
	memset(&list, 0, sizeof list);
	CHECK(getsockopt(fd, SOL_SCTP, SCTP_HMAC_IDENT, &list, &length) == 0);
	CHECK(length == 4 + 2 * count && list.count == count && memcmp(list.ids, ids, count * sizeof *ids) == 0);
}

static void authentication(void)
{
	const uint16_t both[] = { SCTP_AUTH_HMAC_ID_SHA256, SCTP_AUTH_HMAC_ID_SHA1 };
	const uint16_t one[] = { SCTP_AUTH_HMAC_ID_SHA1 }, unknown[] = { SCTP_AUTH_HMAC_ID_SHA1, 9 };
	int server = subscribed(SOCK_STREAM), client = subscribed(SOCK_STREAM), accepted, alone;
	struct sctp_assoc_value wanted = { 0, 1 };
	struct sctp_authchunk data = { .sauth_chunk = 0 };
	struct {
		struct sctp_authchunks head;
		uint8_t types[16];
	} required = { 0 };
	socklen_t length = sizeof required;
	struct sockaddr_in address;
	char got[8];

	algorithms(client, both, 2, 0);
	algorithms(client, one, 1, 0);
	algorithms(client, unknown, 2, EOPNOTSUPP);
	algorithms(client, both, 1, EINVAL);
	algorithms(client, one, 0, EINVAL);
	for (int i = 0; i < 2; i++)
		CHECK(setsockopt(i ? server : client, SOL_SCTP, SCTP_AUTH_SUPPORTED, &wanted, sizeof wanted) == 0);
	CHECK(setsockopt(server, SOL_SCTP, SCTP_AUTH_CHUNK, &data, sizeof data) == 0);
	FAILS(getsockopt(client, SOL_SCTP, SCTP_PEER_AUTH_CHUNKS, &required, &length), EINVAL);
	address = listening(server, 2);
	CHECK(connect(client, SA(address), sizeof address) == 0);
	accepted = accept(server, NULL, NULL);
	CHECK(accepted >= 0);
	length = sizeof required;
	CHECK(getsockopt(client, SOL_SCTP, SCTP_PEER_AUTH_CHUNKS, &required, &length) == 0);
	CHECK(required.head.gauth_number_of_chunks == 1 && required.types[0] == 0);
	CHECK(length == sizeof required.head + 1);
	length = sizeof required;
	CHECK(getsockopt(accepted, SOL_SCTP, SCTP_PEER_AUTH_CHUNKS, &required, &length) == 0);
	CHECK(required.head.gauth_number_of_chunks == 0);
	next(client, SCTP_ASSOC_CHANGE);
	next(accepted, SCTP_ASSOC_CHANGE);
	CHECK(send(client, "words", 5, 0) == 5);
	await(accepted, POLLIN);
	CHECK(recv(accepted, got, sizeof got, 0) == 5);

	/* A peer without it. */
	alone = subscribed(SOCK_STREAM);
	CHECK(connect(alone, SA(address), sizeof address) == 0);
	CHECK(close(accepted) == 0);
	accepted = accept(server, NULL, NULL);
	CHECK(accepted >= 0);
	next(accepted, SCTP_ASSOC_CHANGE);
	CHECK(next(accepted, SCTP_AUTHENTICATION_EVENT).sn_authkey_event.auth_indication == 2 /* SCTP_AUTH_NO_AUTH */);
	/* Nor does this end, which is told of the peer even if it does not want authenticated chunks itself. */
	next(alone, SCTP_ASSOC_CHANGE);
	CHECK(next(alone, SCTP_AUTHENTICATION_EVENT).sn_authkey_event.auth_indication == 2);
	close(alone);
	close(accepted);
	close(client);
	close(server);
}

static double seconds(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void idle(void)
{
	int server = subscribed(SOCK_SEQPACKET), client = subscribed(SOCK_SEQPACKET), one = subscribed(SOCK_STREAM);
	int wait_s = 1, shown = 0;
	socklen_t length = sizeof shown;
	struct sockaddr_in address = listening(server, 3);
	double last = 0;

	FAILS(setsockopt(one, SOL_SCTP, SCTP_AUTOCLOSE, &wait_s, sizeof wait_s), EOPNOTSUPP);
	CHECK(close(one) == 0);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_AUTOCLOSE, &wait_s, sizeof wait_s) == 0);
	CHECK(getsockopt(client, SOL_SCTP, SCTP_AUTOCLOSE, &shown, &length) == 0 && shown == 1);
	/* Every message starts the time over. */
	for (int i = 0; i < 4; i++) {
		last = seconds();
		CHECK(sctp_sendmsg(client, "words", 5, SA(address), sizeof address, 0, 0, 0, 0, 0) == 5);
		usleep(400000);
	}
	CHECK(next(client, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state == SCTP_COMM_UP);
	next(client, SCTP_AUTHENTICATION_EVENT);
	CHECK(next(client, SCTP_ASSOC_CHANGE).sn_assoc_change.sac_state == SCTP_SHUTDOWN_COMP);
	CHECK(seconds() - last >= 1);
	CHECK(close(client) == 0);
	CHECK(close(server) == 0);
}

int main(void)
{
	adaptation();
	authentication();
	idle();
	puts("done");
	return 0;
}
