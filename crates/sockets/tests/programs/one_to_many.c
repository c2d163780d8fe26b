/* One-to-many sockets: implicit associations, identifiers, notifications, sockets of their own. */
#include "common.h"

static char bytes[4096];

/* Receives a notification of this type. */
static union sctp_notification *notified(int fd, int type)
{
	int flags = 0;
	ssize_t length = sctp_recvmsg(fd, bytes, sizeof bytes, NULL, NULL, NULL, &flags);
	union sctp_notification *notification = (union sctp_notification *)bytes;
	CHECK(length > 0 && (flags & MSG_NOTIFICATION) && (flags & MSG_EOR));
	CHECK(notification->sn_header.sn_type == type && notification->sn_header.sn_length == (uint32_t)length);
	return notification;
}

static sctp_assoc_t changed(int fd, int state)
{
	struct sctp_assoc_change *change = &notified(fd, SCTP_ASSOC_CHANGE)->sn_assoc_change;
	CHECK(change->sac_state == state);
	return change->sac_assoc_id;
}

int main(void)
{
	struct sockaddr_in address, from;
	socklen_t length = sizeof from;
	struct sctp_event_subscribe events = {
		.sctp_data_io_event = 1, .sctp_association_event = 1, .sctp_shutdown_event = 1,
	};
	int server = listener(SOCK_SEQPACKET, &address), one = 1, flags = 0;
	int client = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	CHECK(setsockopt(server, SOL_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
	CHECK(setsockopt(server, SOL_SCTP, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
	FAILS(accept(server, NULL, NULL), EOPNOTSUPP);
	/* Nothing can come. */
	FAILS(recv(client, bytes, sizeof bytes, 0), ENOTCONN);
	FAILS(recv(client, bytes, sizeof bytes, MSG_DONTWAIT), EAGAIN);
	FAILS(recv(server, bytes, sizeof bytes, MSG_DONTWAIT), EAGAIN);
	FAILS(send(client, "x", 1, MSG_NOSIGNAL), EPIPE);

	/* The first message opens an association. */
	CHECK(sctp_sendmsg(client, "one", 3, SA(address), sizeof address, htonl(9), 0, 2, 0, 0) == 3);
	sctp_assoc_t near = changed(client, SCTP_COMM_UP), far = changed(server, SCTP_COMM_UP);
	struct sctp_sndrcvinfo info = { 0 };
	CHECK(sctp_recvmsg(server, bytes, sizeof bytes, SA(from), &length, &info, &flags) == 3);
	CHECK(memcmp(bytes, "one", 3) == 0 && info.sinfo_stream == 2 && info.sinfo_ppid == htonl(9));
	CHECK(info.sinfo_ssn == 0 && info.sinfo_tsn != 0 && info.sinfo_cumtsn == info.sinfo_tsn);
	CHECK(info.sinfo_assoc_id == far && from.sin_addr.s_addr == address.sin_addr.s_addr);

	/* Answers by address and by identifier. */
	CHECK(sendto(server, "two", 3, 0, SA(from), length) == 3);
	struct sctp_sndinfo how = { .snd_sid = 1, .snd_flags = SCTP_UNORDERED, .snd_assoc_id = far };
	struct iovec three = { "three", 5 };
	CHECK(sctp_sendv(server, &three, 1, NULL, 0, &how, sizeof how, SCTP_SENDV_SNDINFO, 0) == 5);
	CHECK(setsockopt(client, SOL_SCTP, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
	int seen = 0;
	uint32_t tsns[2];
	for (int i = 0; i < 2; i++) {
		struct sctp_rcvinfo got = { 0 };
		struct iovec into = { bytes, sizeof bytes };
		socklen_t size = sizeof got;
		unsigned type = 99;
		flags = 0;
		int count = sctp_recvv(client, &into, 1, NULL, NULL, &got, &size, &type, &flags);
		CHECK(type == SCTP_RECVV_RCVINFO && size == sizeof got && got.rcv_assoc_id == near);
		int unordered = count == 5;
		CHECK(unordered == !!(got.rcv_flags & SCTP_UNORDERED) && got.rcv_sid == unordered);
		CHECK(got.rcv_ssn == 0 && (int32_t)(got.rcv_cumtsn - got.rcv_tsn) >= 0);
		tsns[i] = got.rcv_tsn;
		seen += count;
	}
	CHECK(seen == 8 && (tsns[1] - tsns[0] == 1 || tsns[0] - tsns[1] == 1));

	/* A second association, and a socket of its own for it. */
	struct sockaddr_in second;
	int third = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	sctp_assoc_t id = 0;
	CHECK(sctp_connectx(third, SA(address), 1, &id) == 0 && id > 2);
	FAILS(connect(third, SA(address), sizeof address), EISCONN);
	sctp_assoc_t peeled_id = changed(server, SCTP_COMM_UP);
	CHECK(peeled_id != far);
	int count = 0;
	length = sizeof count;
	CHECK(getsockopt(server, SOL_SCTP, SCTP_GET_ASSOC_NUMBER, &count, &length) == 0 && count == 2);
	struct { uint32_t number; sctp_assoc_t ids[8]; } list;
	length = sizeof list;
	CHECK(getsockopt(server, SOL_SCTP, SCTP_GET_ASSOC_ID_LIST, &list, &length) == 0 && list.number == 2);
	CHECK(list.ids[0] == far && list.ids[1] == peeled_id);
	FAILS(sctp_peeloff(server, 1 << 30), EINVAL);
	int peeled = sctp_peeloff(server, peeled_id);
	FAILS(sctp_peeloff(peeled, peeled_id), EINVAL);
	CHECK(peeled >= 0);
	length = sizeof second;
	CHECK(getpeername(peeled, SA(second), &length) == 0 && second.sin_port != from.sin_port);
	CHECK(sctp_sendmsg(third, "peeled", 6, SA(address), sizeof address, 0, 0, 0, 0, 0) == 6);
	await(peeled, POLLIN);
	CHECK(recv(peeled, bytes, sizeof bytes, 0) == 6);
	CHECK(write(peeled, "back", 4) == 4);
	CHECK(read(third, bytes, sizeof bytes) == 4);
	close(third);

	/* The end of an association leaves the socket. */
	/* A message that shuts the association down has no data. */
	FAILS(sctp_sendmsg(client, "bye", 3, SA(address), sizeof address, 0, SCTP_EOF, 0, 0, 0), EINVAL);
	CHECK(sctp_sendmsg(client, NULL, 0, SA(address), sizeof address, 0, SCTP_EOF, 0, 0, 0) == 0);
	CHECK(changed(client, SCTP_SHUTDOWN_COMP) == near || 1);
	notified(server, SCTP_SHUTDOWN_EVENT);
	CHECK(changed(server, SCTP_SHUTDOWN_COMP) == far);
	CHECK(sctp_sendmsg(client, "again", 5, SA(address), sizeof address, 0, 0, 0, 0, 0) == 5);
	CHECK(changed(server, SCTP_COMM_UP) != far);
	CHECK(recv(server, bytes, sizeof bytes, 0) == 5);

	/* An abort is told as the loss of the association. */
	CHECK(sctp_sendmsg(client, "why", 3, SA(address), sizeof address, 0, SCTP_ABORT, 0, 0, 0) == 3);
	changed(server, SCTP_COMM_LOST);
	close(client);
	close(peeled);
	close(server);
	puts("done");
	return 0;
}
