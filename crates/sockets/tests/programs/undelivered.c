/* What a program is told about messages that were not delivered, and about the end of an association (RFC 6458, 6.1.1 and
 * 6.1.11). */
#include "common.h"

enum { ROOM = 16384, LATE = 5 };

static void subscribe(int fd, int dry)
{
	const int kinds[] = { SCTP_ASSOC_CHANGE, SCTP_SEND_FAILED_EVENT, SCTP_SENDER_DRY_EVENT };

	for (int i = 0; i < (dry ? 3 : 2); i++) {
		struct sctp_event event = { .se_type = kinds[i], .se_on = 1 };
		CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
	}
}

/* The next notification, of this type, in a buffer. Returns its length. */
static size_t next(int fd, int type, void *buffer)
{
	struct iovec vector = { buffer, ROOM };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };
	ssize_t got;

	await(fd, POLLIN);
	got = recvmsg(fd, &header, 0);
	CHECK(got > 0 && (header.msg_flags & MSG_NOTIFICATION));
	CHECK(((union sctp_notification *)buffer)->sn_header.sn_type == type);
	CHECK(((union sctp_notification *)buffer)->sn_header.sn_length == got);
	return got;
}

static void submit(int fd, struct sockaddr_in *to, uint32_t context, uint32_t lifetime_ms, const char *text)
{
	struct sctp_sendv_spa how = { .sendv_flags = SCTP_SEND_SNDINFO_VALID };
	struct iovec vector = { (void *)text, strlen(text) };

	how.sendv_sndinfo.snd_sid = 2;
	how.sendv_sndinfo.snd_ppid = htonl(9);
	how.sendv_sndinfo.snd_context = context;
	if (lifetime_ms) {
		how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
		how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_TTL;
		how.sendv_prinfo.pr_value = lifetime_ms;
	}
	CHECK(sctp_sendv(fd, &vector, 1, SA(*to), to ? 1 : 0, &how, sizeof how, SCTP_SENDV_SPA, 0) == (ssize_t)strlen(text));
}

static void failed(int fd, int flags, uint32_t context, const char *text)
{
	_Alignas(8) char buffer[ROOM];
	size_t length = next(fd, SCTP_SEND_FAILED_EVENT, buffer);
	struct sctp_send_failed_event *event = (void *)buffer;

	CHECK(event->ssf_flags == flags);
	CHECK(event->ssfe_info.snd_sid == 2 && event->ssfe_info.snd_ppid == htonl(9));
	CHECK(event->ssfe_info.snd_context == context);
	CHECK(length == sizeof *event + strlen(text) && memcmp(event->ssf_data, text, strlen(text)) == 0);
}

static struct sctp_assoc_change changed(int fd, int state, const char *reason)
{
	_Alignas(8) char buffer[ROOM];
	size_t length = next(fd, SCTP_ASSOC_CHANGE, buffer);
	struct sctp_assoc_change *event = (void *)buffer;
	size_t chunk = reason ? 8 + strlen(reason) : 0;

	CHECK(event->sac_state == state);
	CHECK(length == sizeof *event + chunk);
	if (reason) {
		const unsigned char *info = event->sac_info;

		/* An ABORT chunk, with the cause "user-initiated abort". */
		CHECK(info[0] == 6 && (info[2] << 8 | info[3]) == (int)chunk && info[5] == 12);
		CHECK(memcmp(info + 8, reason, strlen(reason)) == 0);
		CHECK(event->sac_error == htons(12));
	}
	return *event;
}

/* A pair of ends, the second of which has a receive buffer of 8 kB and uses three streams. */
static void pair(int ends[2])
{
	/* The second end may abort the association with a reason, because it is peeled off. */
	int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), bytes = 8000;
	struct { uint32_t count; sctp_assoc_t id; } all;
	socklen_t all_length = sizeof all;
	struct sockaddr_in address = loopback(0);
	struct sctp_initmsg init = { .sinit_num_ostreams = 3 };
	socklen_t length = sizeof address;

	CHECK(fd >= 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x201);
	CHECK(bind(fd, SA(address), sizeof address) == 0 && listen(fd, 8) == 0);
	CHECK(getsockname(fd, SA(address), &length) == 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(ends[0] >= 0);
	subscribe(ends[0], 0);
	CHECK(connect(ends[0], SA(address), sizeof address) == 0);
	do {
		all_length = sizeof all;
		CHECK(getsockopt(fd, SOL_SCTP, SCTP_GET_ASSOC_ID_LIST, &all, &all_length) == 0);
	} while (all.count == 0);
	ends[1] = sctp_peeloff(fd, all.id);
	CHECK(ends[1] >= 0);
	CHECK(close(fd) == 0);
}

static void given_up_and_aborted(void)
{
	struct sctp_prstatus counts = { .sprstat_sid = 2, .sprstat_policy = SCTP_PR_SCTP_TTL };
	struct sctp_sndrcvinfo abort = { .sinfo_flags = SCTP_ABORT };
	socklen_t length = sizeof counts;
	static char filling[8000];
	struct sctp_assoc_change up;
	char text[] = "late 0";
	int ends[2];

	pair(ends);
	up = changed(ends[0], SCTP_COMM_UP, NULL);
	CHECK(up.sac_inbound_streams == 3 && up.sac_outbound_streams == 10);
	/* Nobody reads: the window of the peer shuts. */
	for (int i = 0; i < 40; i++)
		CHECK(sctp_sendmsg(ends[0], filling, sizeof filling, NULL, 0, 0, 0, 0, 0, 0) == sizeof filling);
	for (int i = 0; i < LATE; i++) {
		text[5] = '0' + i;
		submit(ends[0], NULL, 100 + i, 100, text);
	}
	for (int i = 0; i < LATE; i++) {
		text[5] = '0' + i;
		failed(ends[0], SCTP_DATA_UNSENT, 100 + i, text);
	}
	CHECK(getsockopt(ends[0], SOL_SCTP, SCTP_PR_STREAM_STATUS, &counts, &length) == 0);
	CHECK(counts.sprstat_abandoned_unsent == LATE && counts.sprstat_abandoned_sent == 0);
	submit(ends[0], NULL, 1234, 0, "never read");
	CHECK(sctp_send(ends[1], "why not", 7, &abort, 0) == 7);
	for (;;) {
		_Alignas(8) char buffer[ROOM];
		struct sctp_send_failed_event *event = (void *)buffer;

		next(ends[0], SCTP_SEND_FAILED_EVENT, buffer);
		if (event->ssfe_info.snd_sid == 2) {
			CHECK(event->ssfe_info.snd_context == 1234);
			break;
		}
	}
	changed(ends[0], SCTP_COMM_LOST, "why not");
	close(ends[0]);
	close(ends[1]);
}

static void never_connected(void)
{
	int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	struct sctp_initmsg init = { .sinit_max_attempts = 1, .sinit_max_init_timeo = 200 };
	struct sockaddr_in nowhere = loopback(5);

	CHECK(fd >= 0);
	nowhere.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 0x2ff);
	subscribe(fd, 1);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_INITMSG, &init, sizeof init) == 0);
	submit(fd, &nowhere, 77, 0, "hello");
	failed(fd, SCTP_DATA_UNSENT, 77, "hello");
	changed(fd, SCTP_CANT_STR_ASSOC, NULL);
	CHECK(events_of(fd, 300) == POLLOUT);
	CHECK(close(fd) == 0);
}

int main(void)
{
	given_up_and_aborted();
	never_connected();
	puts("done");
	return 0;
}
