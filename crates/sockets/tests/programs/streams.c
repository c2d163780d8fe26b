/* Streams that are reset and added, and their notifications (RFC 6525, 6). */
#include "common.h"

static void subscribe(int fd)
{
	uint16_t types[] = { SCTP_STREAM_RESET_EVENT, SCTP_ASSOC_RESET_EVENT, SCTP_STREAM_CHANGE_EVENT };
	for (size_t i = 0; i < 3; i++) {
		struct sctp_event event = { .se_type = types[i], .se_on = 1 };
		CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENT, &event, sizeof event) == 0);
	}
}

static void enable(int fd, uint32_t bits)
{
	struct sctp_assoc_value value = { 0, bits };
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_ENABLE_STREAM_RESET, &value, sizeof value) == 0);
	value.assoc_value = 99;
	socklen_t length = sizeof value;
	CHECK(getsockopt(fd, SOL_SCTP, SCTP_ENABLE_STREAM_RESET, &value, &length) == 0);
	CHECK(value.assoc_value == bits);
}

/* Receives a notification of a type. */
static size_t notified(int fd, uint16_t type, void *into, size_t size)
{
	struct iovec vector = { into, size };
	struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1 };
	await(fd, POLLIN);
	ssize_t got = recvmsg(fd, &header, 0);
	CHECK(got >= 12 && (header.msg_flags & MSG_NOTIFICATION));
	struct sctp_assoc_reset_event *event = into;
	CHECK(event->assocreset_type == type);
	CHECK(event->assocreset_length == (uint32_t)got);
	return (size_t)got;
}

static void send_on(int fd, uint16_t stream, const char *text)
{
	CHECK(sctp_sendmsg(fd, text, strlen(text), NULL, 0, 0, 0, stream, 0, 0) == (int)strlen(text));
}

static void expect(int fd, uint16_t stream, const char *text)
{
	char got[100];
	int flags = 0;
	struct sctp_sndrcvinfo info = { 0 };
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1, .sctp_stream_reset_event = 1 };
	events.sctp_assoc_reset_event = events.sctp_stream_change_event = 1;
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
	await(fd, POLLIN);
	int length = sctp_recvmsg(fd, got, sizeof got, NULL, NULL, &info, &flags);
	CHECK(length == (int)strlen(text) && memcmp(got, text, strlen(text)) == 0);
	CHECK(!(flags & MSG_NOTIFICATION) && info.sinfo_stream == stream);
}

static int reset(int fd, uint16_t flags, uint16_t count, uint16_t first, uint16_t second)
{
	union {
		struct sctp_reset_streams request;
		char bytes[sizeof(struct sctp_reset_streams) + 4];
	} all = { .request = { .srs_flags = flags, .srs_number_streams = count } };
	uint16_t streams[2] = { first, second };
	memcpy(all.bytes + sizeof(struct sctp_reset_streams), streams, sizeof streams);
	return setsockopt(fd, SOL_SCTP, SCTP_RESET_STREAMS, &all,
			  (socklen_t)(sizeof(struct sctp_reset_streams) + 2 * count));
}

static void a_reset_is_told_between_the_messages(int ends[2])
{
	union {
		struct sctp_stream_reset_event event;
		char bytes[100];
	} told;
	uint16_t streams[2];
	send_on(ends[0], 3, "before");
	CHECK(reset(ends[0], SCTP_STREAM_RESET_OUTGOING, 2, 3, 1) == 0);
	send_on(ends[0], 3, "after");
	expect(ends[1], 3, "before");
	CHECK(notified(ends[1], SCTP_STREAM_RESET_EVENT, &told, sizeof told) == 16);
	CHECK(told.event.strreset_flags == SCTP_STREAM_RESET_INCOMING_SSN);
	memcpy(streams, told.bytes + 12, sizeof streams);
	CHECK(streams[0] == 1 && streams[1] == 3);
	expect(ends[1], 3, "after");
	CHECK(notified(ends[0], SCTP_STREAM_RESET_EVENT, &told, sizeof told) == 16);
	CHECK(told.event.strreset_flags == SCTP_STREAM_RESET_OUTGOING_SSN);
	/* The peer is asked to reset all of its streams. */
	CHECK(reset(ends[0], SCTP_STREAM_RESET_INCOMING, 0, 0, 0) == 0);
	CHECK(notified(ends[0], SCTP_STREAM_RESET_EVENT, &told, sizeof told) == 12);
	CHECK(told.event.strreset_flags == SCTP_STREAM_RESET_INCOMING_SSN);
	CHECK(notified(ends[1], SCTP_STREAM_RESET_EVENT, &told, sizeof told) == 12);
	CHECK(told.event.strreset_flags == SCTP_STREAM_RESET_OUTGOING_SSN);
}

static void what_is_not_enabled_is_denied(int ends[2])
{
	struct sctp_assoc_reset_event told;
	enable(ends[1], SCTP_ENABLE_RESET_STREAM_REQ);
	sctp_assoc_t id = 0;
	CHECK(setsockopt(ends[0], SOL_SCTP, SCTP_RESET_ASSOC, &id, sizeof id) == 0);
	CHECK(notified(ends[0], SCTP_ASSOC_RESET_EVENT, &told, sizeof told) == sizeof told);
	CHECK(told.assocreset_flags == SCTP_ASSOC_RESET_DENIED);
	enable(ends[1], SCTP_ENABLE_STRRESET_MASK);
	CHECK(setsockopt(ends[0], SOL_SCTP, SCTP_RESET_ASSOC, &id, sizeof id) == 0);
	uint32_t tsns[2];
	for (int end = 0; end < 2; end++) {
		CHECK(notified(ends[end], SCTP_ASSOC_RESET_EVENT, &told, sizeof told) == sizeof told);
		CHECK(told.assocreset_flags == 0);
		if (end == 0) {
			tsns[0] = told.assocreset_local_tsn;
			tsns[1] = told.assocreset_remote_tsn;
		}
	}
	CHECK(told.assocreset_local_tsn == tsns[1] && told.assocreset_remote_tsn == tsns[0]);
	send_on(ends[1], 2, "back");
	expect(ends[0], 2, "back");
}

static void streams_are_added(int ends[2])
{
	struct sctp_status status;
	struct sctp_stream_change_event told;
	socklen_t length = sizeof status;
	CHECK(getsockopt(ends[0], SOL_SCTP, SCTP_STATUS, &status, &length) == 0);
	uint16_t before = status.sstat_outstrms;
	FAILS(sctp_sendmsg(ends[0], "x", 1, NULL, 0, 0, 0, before, 0, 0), EINVAL);
	FAILS(reset(ends[0], SCTP_STREAM_RESET_OUTGOING, 1, before, 0), EINVAL);
	FAILS(reset(ends[0], 0, 0, 0, 0), EINVAL);
	struct sctp_add_streams more = { .sas_outstrms = 2 };
	CHECK(setsockopt(ends[0], SOL_SCTP, SCTP_ADD_STREAMS, &more, sizeof more) == 0);
	CHECK(notified(ends[0], SCTP_STREAM_CHANGE_EVENT, &told, sizeof told) == sizeof told);
	CHECK(told.strchange_flags == 0 && told.strchange_outstrms == before + 2);
	CHECK(told.strchange_instrms == status.sstat_instrms);
	CHECK(notified(ends[1], SCTP_STREAM_CHANGE_EVENT, &told, sizeof told) == sizeof told);
	CHECK(told.strchange_instrms > status.sstat_instrms);
	length = sizeof status;
	CHECK(getsockopt(ends[0], SOL_SCTP, SCTP_STATUS, &status, &length) == 0);
	CHECK(status.sstat_outstrms == before + 2);
	send_on(ends[0], before + 1, "new");
	expect(ends[1], before + 1, "new");
	more.sas_outstrms = 0;
	FAILS(setsockopt(ends[0], SOL_SCTP, SCTP_ADD_STREAMS, &more, sizeof more), EINVAL);
	more.sas_instrms = 65535;
	FAILS(setsockopt(ends[0], SOL_SCTP, SCTP_ADD_STREAMS, &more, sizeof more), EINVAL);
}

/* As many streams as there are numbers, in both directions. */
static void all_streams(void)
{
	struct sctp_initmsg out = { .sinit_num_ostreams = 65535 }, in = { .sinit_max_instreams = 65535 };
	struct sockaddr_in address = loopback(0);
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), near = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), far;
	struct sctp_event_subscribe io = { .sctp_data_io_event = 1 };
	struct sctp_sndrcvinfo info;
	char got[8];
	int flags = 0;

	CHECK(setsockopt(near, SOL_SCTP, SCTP_INITMSG, &out, sizeof out) == 0);
	CHECK(setsockopt(fd, SOL_SCTP, SCTP_INITMSG, &in, sizeof in) == 0);
	CHECK(bind(fd, SA(address), length) == 0 && listen(fd, 1) == 0 && getsockname(fd, SA(address), &length) == 0);
	CHECK(connect(near, SA(address), length) == 0);
	far = accept(fd, NULL, NULL);
	CHECK(far >= 0);
	CHECK(sctp_sendmsg(near, "last", 4, NULL, 0, 0, 0, 65534, 0, 0) == 4);
	FAILS(sctp_sendmsg(near, "none", 4, NULL, 0, 0, 0, 65535, 0, 0), EINVAL);
	CHECK(setsockopt(far, SOL_SCTP, SCTP_EVENTS, &io, sizeof io) == 0);
	CHECK(sctp_recvmsg(far, got, sizeof got, NULL, NULL, &info, &flags) == 4 && info.sinfo_stream == 65534);
	CHECK(close(near) == 0 && close(far) == 0 && close(fd) == 0);
}

int main(void)
{
	all_streams();
	int ends[2];
	connected(ends);
	subscribe(ends[0]);
	subscribe(ends[1]);
	enable(ends[0], 0);
	enable(ends[1], SCTP_ENABLE_STRRESET_MASK);
	struct sctp_assoc_value wrong = { 0, 8 };
	FAILS(setsockopt(ends[0], SOL_SCTP, SCTP_ENABLE_STREAM_RESET, &wrong, sizeof wrong), EINVAL);
	a_reset_is_told_between_the_messages(ends);
	what_is_not_enabled_is_denied(ends);
	streams_are_added(ends);
	close(ends[0]);
	await(ends[1], POLLIN);
	char byte;
	CHECK(read(ends[1], &byte, 1) == 0);
	CHECK(reset(ends[1], SCTP_STREAM_RESET_OUTGOING, 0, 0, 0) == -1);
	int lonely = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(reset(lonely, SCTP_STREAM_RESET_OUTGOING, 0, 0, 0) == -1);
	puts("done");
	return 0;
}
