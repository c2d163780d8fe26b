/* One-to-many sockets: options of one association, and messages to all. */
#include "common.h"

enum { PEERS = 2 };

static char bytes[1 << 20];

/* A socket with an association to each of some peers. */
struct star {
	int hub, peers[PEERS];
	struct sockaddr_in addresses[PEERS];
	sctp_assoc_t ids[PEERS];
};

static struct star star_of(int send_buffer)
{
	struct star star = { .hub = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP) };
	struct { uint32_t number; sctp_assoc_t ids[8]; } list;
	socklen_t length = sizeof list;
	int one = 1;

	if (send_buffer)
		CHECK(setsockopt(star.hub, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer) == 0);
	for (int i = 0; i < PEERS; i++) {
		star.peers[i] = listener(SOCK_SEQPACKET, &star.addresses[i]);
		CHECK(setsockopt(star.peers[i], SOL_SCTP, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
		CHECK(sctp_sendmsg(star.hub, "hello", 5, SA(star.addresses[i]), sizeof star.addresses[i], 0, 0, 0, 0, 0) == 5);
		CHECK(recv(star.peers[i], bytes, sizeof bytes, 0) == 5);
	}
	CHECK(getsockopt(star.hub, SOL_SCTP, SCTP_GET_ASSOC_ID_LIST, &list, &length) == 0 && list.number == PEERS);
	memcpy(star.ids, list.ids, sizeof star.ids);
	return star;
}

static void end(struct star *star)
{
	CHECK(close(star->hub) == 0);
	for (int i = 0; i < PEERS; i++)
		CHECK(close(star->peers[i]) == 0);
}

static int set(int fd, int name, const void *value, socklen_t length)
{
	return setsockopt(fd, SOL_SCTP, name, value, length);
}

static void get(int fd, int name, void *value, socklen_t length)
{
	CHECK(getsockopt(fd, SOL_SCTP, name, value, &length) == 0);
}

/* The stream on which the next message comes. */
static int stream_at(struct star *star, int peer)
{
	struct sctp_rcvinfo info = { 0 };
	struct iovec into = { bytes, sizeof bytes };
	socklen_t size = sizeof info;
	unsigned type = 0;
	int flags = 0;

	CHECK(sctp_recvv(star->peers[peer], &into, 1, NULL, NULL, &info, &size, &type, &flags) > 0);
	CHECK(type == SCTP_RECVV_RCVINFO);
	return info.rcv_sid;
}

static void send_plain(struct star *star, int peer)
{
	CHECK(sendto(star->hub, "x", 1, 0, SA(star->addresses[peer]), sizeof star->addresses[peer]) == 1);
}

/* RFC 6458, 7.2: an option of one association changes no other one, and later ones have those of the socket. */
static void defaults_of_one_association(void)
{
	struct star star = star_of(0);
	struct sctp_sndinfo info = { .snd_sid = 5, .snd_ppid = htonl(0x55), .snd_assoc_id = star.ids[0] };
	struct sctp_sndrcvinfo old = { .sinfo_stream = 6, .sinfo_assoc_id = star.ids[0] };
	struct sctp_default_prinfo limit = { .pr_assoc_id = star.ids[0], .pr_value = 9, .pr_policy = SCTP_PR_SCTP_RTX };
	struct sctp_assoc_value most = { star.ids[0], 600 };
	socklen_t length = sizeof info;

	CHECK(set(star.hub, SCTP_DEFAULT_SNDINFO, &info, sizeof info) == 0);
	send_plain(&star, 0);
	send_plain(&star, 1);
	CHECK(stream_at(&star, 0) == 5 && stream_at(&star, 1) == 0);
	info = (struct sctp_sndinfo){ 0 };
	CHECK(sctp_opt_info(star.hub, star.ids[0], SCTP_DEFAULT_SNDINFO, &info, &length) == 0);
	CHECK(info.snd_sid == 5 && info.snd_ppid == htonl(0x55) && info.snd_assoc_id == star.ids[0]);
	for (int other = 0; other < 2; other++) {
		info = (struct sctp_sndinfo){ .snd_sid = 7, .snd_assoc_id = other ? star.ids[1] : SCTP_FUTURE_ASSOC };
		get(star.hub, SCTP_DEFAULT_SNDINFO, &info, sizeof info);
		CHECK(info.snd_sid == 0 && info.snd_ppid == 0);
	}

	CHECK(set(star.hub, SCTP_DEFAULT_SEND_PARAM, &old, sizeof old) == 0);
	old.sinfo_assoc_id = star.ids[1];
	get(star.hub, SCTP_DEFAULT_SEND_PARAM, &old, sizeof old);
	CHECK(old.sinfo_stream == 0 && old.sinfo_assoc_id == star.ids[1]);
	CHECK(set(star.hub, SCTP_DEFAULT_PRINFO, &limit, sizeof limit) == 0);
	limit.pr_assoc_id = star.ids[1];
	get(star.hub, SCTP_DEFAULT_PRINFO, &limit, sizeof limit);
	CHECK(limit.pr_policy == SCTP_PR_SCTP_NONE && limit.pr_value == 0);
	CHECK(set(star.hub, SCTP_MAXSEG, &most, sizeof most) == 0);
	get(star.hub, SCTP_MAXSEG, &most, sizeof most);
	CHECK(most.assoc_value == 600);
	most.assoc_id = star.ids[1];
	get(star.hub, SCTP_MAXSEG, &most, sizeof most);
	CHECK(most.assoc_value > 1000);

	/* An association that is given away keeps what it has. */
	int peeled = sctp_peeloff(star.hub, star.ids[0]);
	CHECK(peeled >= 0 && write(peeled, "x", 1) == 1 && stream_at(&star, 0) == 6);
	close(peeled);
	end(&star);
}

/* Settings of the socket reach later associations, those of the present ones do not, and all means both. */
static void scopes(void)
{
	static const struct { sctp_assoc_t id; int now, later; } cases[] = {
		{ SCTP_FUTURE_ASSOC, 0, 4 }, { SCTP_CURRENT_ASSOC, 4, 0 }, { SCTP_ALL_ASSOC, 4, 4 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct star star = star_of(0);
		struct sctp_sndinfo info = { .snd_sid = 4, .snd_assoc_id = cases[i].id };
		struct sockaddr_in address;
		CHECK(set(star.hub, SCTP_DEFAULT_SNDINFO, &info, sizeof info) == 0);
		send_plain(&star, 0);
		CHECK(stream_at(&star, 0) == cases[i].now);
		CHECK(close(star.peers[1]) == 0);
		star.peers[1] = listener(SOCK_SEQPACKET, &address);
		int one = 1;
		CHECK(set(star.peers[1], SCTP_RECVRCVINFO, &one, sizeof one) == 0);
		star.addresses[1] = address;
		send_plain(&star, 1);
		CHECK(stream_at(&star, 1) == cases[i].later);
		end(&star);
	}
}

/* Identifiers of no association, streams that an association has not, and policies that RFC 7496 does not know. */
static void refused(void)
{
	struct star star = star_of(0);
	struct sctp_sndinfo info = { .snd_sid = 1, .snd_assoc_id = 99999 };
	struct sctp_sndrcvinfo old = { .sinfo_assoc_id = 99999 };
	struct sctp_default_prinfo limit = { .pr_assoc_id = 99999, .pr_policy = SCTP_PR_SCTP_TTL, .pr_value = 1 };
	struct sctp_assoc_value value = { 99999, 600 };
	struct sctp_event event = { .se_assoc_id = 99999, .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
	socklen_t length = sizeof value;

	FAILS(set(star.hub, SCTP_DEFAULT_SNDINFO, &info, sizeof info), EINVAL);
	FAILS(set(star.hub, SCTP_DEFAULT_SEND_PARAM, &old, sizeof old), EINVAL);
	FAILS(set(star.hub, SCTP_DEFAULT_PRINFO, &limit, sizeof limit), EINVAL);
	FAILS(set(star.hub, SCTP_MAXSEG, &value, sizeof value), EINVAL);
	FAILS(set(star.hub, SCTP_CONTEXT, &value, sizeof value), EINVAL);
	FAILS(set(star.hub, SCTP_EVENT, &event, sizeof event), EINVAL);
	FAILS(getsockopt(star.hub, SOL_SCTP, SCTP_MAXSEG, &value, &length), EINVAL);
	length = sizeof info;
	FAILS(getsockopt(star.hub, SOL_SCTP, SCTP_DEFAULT_SNDINFO, &info, &length), EINVAL);

	for (int i = 0; i < 3; i++) {
		info.snd_assoc_id = old.sinfo_assoc_id = i == 0 ? star.ids[0] : i == 1 ? SCTP_CURRENT_ASSOC : SCTP_ALL_ASSOC;
		info.snd_sid = old.sinfo_stream = 10;
		FAILS(set(star.hub, SCTP_DEFAULT_SNDINFO, &info, sizeof info), EINVAL);
		FAILS(set(star.hub, SCTP_DEFAULT_SEND_PARAM, &old, sizeof old), EINVAL);
		info.snd_sid = old.sinfo_stream = 9;
		CHECK(set(star.hub, SCTP_DEFAULT_SNDINFO, &info, sizeof info) == 0);
		CHECK(set(star.hub, SCTP_DEFAULT_SEND_PARAM, &old, sizeof old) == 0);
	}

	struct iovec one = { "x", 1 };
	struct sctp_prinfo policy = { .pr_policy = 0x70, .pr_value = 1 };
	limit.pr_assoc_id = star.ids[0];
	limit.pr_policy = 0x70;
	FAILS(set(star.hub, SCTP_DEFAULT_PRINFO, &limit, sizeof limit), EINVAL);
	FAILS(sctp_sendv(star.hub, &one, 1, SA(star.addresses[0]), 1, &policy, sizeof policy, SCTP_SENDV_PRINFO, 0), EINVAL);
	end(&star);
}

/* Sends a byte with a control message. */
static ssize_t send_with(struct star *star, int type, const void *data, size_t length)
{
	char control[CMSG_SPACE(64)] = { 0 };
	struct iovec one = { "x", 1 };
	struct msghdr message = {
		.msg_name = &star->addresses[0], .msg_namelen = sizeof star->addresses[0], .msg_iov = &one, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = CMSG_SPACE(length),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	*header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(length), .cmsg_level = IPPROTO_SCTP, .cmsg_type = type };
	memcpy(CMSG_DATA(header), data, length);
	return sendmsg(star->hub, &message, 0);
}

/* What the library cannot do for a message is refused, and nothing is sent. */
static void control_messages(void)
{
	struct star star = star_of(0);
	struct iovec one = { "x", 1 };
	struct sctp_authinfo key = { 0 };
	struct sctp_sendv_spa all = { .sendv_flags = SCTP_SEND_AUTHINFO_VALID };
	struct sctp_rcvinfo received = { 0 };
	struct sctp_sndinfo info = { .snd_sid = 3 };

	struct sctp_sndinfo unknown = { .snd_flags = 1 << 15 };
	struct sctp_sndrcvinfo unknown_too = { .sinfo_flags = 1 << 15 };

	FAILS(send_with(&star, SCTP_SNDINFO, &unknown, sizeof unknown), EINVAL);
	FAILS(send_with(&star, SCTP_SNDRCV, &unknown_too, sizeof unknown_too), EINVAL);
	FAILS(send_with(&star, SCTP_RCVINFO, &received, sizeof received), EINVAL);
	FAILS(send_with(&star, 99, &key, sizeof key), EINVAL);
	/* The key of a message counts if the peer wants it authenticated. */
	for (key.auth_keynumber = 0; key.auth_keynumber < 2; key.auth_keynumber++) {
		CHECK(send_with(&star, SCTP_AUTHINFO, &key, sizeof key) == 1);
		CHECK(stream_at(&star, 0) == 0);
		CHECK(sctp_sendv(star.hub, &one, 1, SA(star.addresses[0]), 1, &key, sizeof key, SCTP_SENDV_AUTHINFO, 0) == 1);
		CHECK(stream_at(&star, 0) == 0);
		all.sendv_authinfo = key;
		CHECK(sctp_sendv(star.hub, &one, 1, SA(star.addresses[0]), 1, &all, sizeof all, SCTP_SENDV_SPA, 0) == 1);
		CHECK(stream_at(&star, 0) == 0);
	}
	CHECK(send_with(&star, SCTP_SNDINFO, &info, sizeof info) == 1);
	CHECK(stream_at(&star, 0) == 3);
	all = (struct sctp_sendv_spa){ .sendv_flags = SCTP_SEND_SNDINFO_VALID, .sendv_sndinfo = { .snd_sid = 2 } };
	CHECK(sctp_sendv(star.hub, &one, 1, SA(star.addresses[0]), 1, &all, sizeof all, SCTP_SENDV_SPA, 0) == 1);
	CHECK(stream_at(&star, 0) == 2);
	end(&star);
}

static int send_all(struct star *star, const void *data, size_t length, int stream, int flags)
{
	struct iovec one = { (void *)data, length };
	struct sctp_sndinfo info = { .snd_sid = stream, .snd_flags = SCTP_SENDALL };
	return sctp_sendv(star->hub, &one, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, flags);
}

enum { MESSAGES = 200, LENGTH = 20000 };

/* Receives numbered messages. */
static void *receive_all(void *fd)
{
	char *into = malloc(LENGTH);
	for (int i = 0; i < MESSAGES; i++) {
		int number = -1;
		CHECK(recv(*(int *)fd, into, LENGTH, MSG_WAITALL) == LENGTH);
		memcpy(&number, into, sizeof number);
		CHECK(number == i);
	}
	free(into);
	return NULL;
}

/* A message to all arrives at each peer once, however full the send buffers are. */
static void messages_to_all(int nonblocking)
{
	struct star star = star_of(70000);
	pthread_t threads[PEERS];
	static char message[LENGTH];
	int refused = 0;

	for (int i = 0; i < MESSAGES; i++) {
		int got;
		/* The second peer begins to receive after the first one, so that their send buffers are full at different times. */
		if (i == 20)
			CHECK(pthread_create(&threads[0], NULL, receive_all, &star.peers[0]) == 0);
		if (i == 40)
			CHECK(pthread_create(&threads[1], NULL, receive_all, &star.peers[1]) == 0);
		memcpy(message, &i, sizeof i);
		while ((got = send_all(&star, message, LENGTH, 0, nonblocking ? MSG_DONTWAIT : 0)) < 0) {
			CHECK(nonblocking && errno == EAGAIN);
			refused++;
			await(star.hub, POLLOUT);
		}
		CHECK(got == LENGTH);
	}
	CHECK(!nonblocking || refused > 0);
	for (int i = 0; i < PEERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	end(&star);
}

/* A message to all is refused as one to a single peer is, and then nobody gets it. */
static void messages_to_all_are_checked(void)
{
	struct star star = star_of(0);
	int alone = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), one = 1;
	struct star nobody = { .hub = alone };
	struct sctp_assoc_value most = { star.ids[1], 600 };

	FAILS(send_all(&nobody, "x", 1, 0, MSG_NOSIGNAL), EPIPE);
	close(alone);
	FAILS(send_all(&star, "x", 1, 10, 0), EINVAL);
	FAILS(send_all(&star, "", 0, 0, 0), EINVAL);
	/* One association refuses it. */
	CHECK(set(star.hub, SCTP_DISABLE_FRAGMENTS, &one, sizeof one) == 0);
	CHECK(set(star.hub, SCTP_MAXSEG, &most, sizeof most) == 0);
	FAILS(send_all(&star, bytes, 700, 0, 0), EMSGSIZE);
	CHECK(send_all(&star, "last", 4, 3, 0) == 4);
	for (int i = 0; i < PEERS; i++)
		CHECK(stream_at(&star, i) == 3);
	/* An association whose shutdown has begun takes no messages. */
	for (int i = 0; i < PEERS; i++) {
		struct sockaddr_in *peer = &star.addresses[i];
		CHECK(sctp_sendmsg(star.hub, NULL, 0, SA(*peer), sizeof *peer, 0, SCTP_EOF, 0, 0, 0) == 0);
		if (i + 1 < PEERS) {
			CHECK(send_all(&star, "rest", 4, 2, 0) == 4);
			CHECK(stream_at(&star, i + 1) == 2);
		}
	}
	FAILS(send_all(&star, "none", 4, 2, MSG_NOSIGNAL), EPIPE);
	end(&star);
}

/* RFC 6458, 6.1.9: if nothing is unsent or unacknowledged when a program subscribes, it is told so at once. */
static void dry_at_subscription(int old)
{
	struct star star = star_of(0);
	struct sctp_event event = { .se_assoc_id = SCTP_ALL_ASSOC, .se_type = SCTP_SENDER_DRY_EVENT, .se_on = 1 };
	struct sctp_event_subscribe events = { .sctp_sender_dry_event = 1 };
	int seen[PEERS] = { 0 }, flags = 0;

	/* All is acknowledged. */
	usleep(400000);
	CHECK((old ? set(star.hub, SCTP_EVENTS, &events, sizeof events) : set(star.hub, SCTP_EVENT, &event, sizeof event)) == 0);
	for (int i = 0; i < PEERS; i++) {
		union sctp_notification *told = (union sctp_notification *)bytes;
		CHECK(recv(star.hub, bytes, sizeof bytes, MSG_DONTWAIT) == sizeof told->sn_sender_dry_event);
		CHECK(told->sn_header.sn_type == SCTP_SENDER_DRY_EVENT);
		for (int k = 0; k < PEERS; k++)
			seen[k] += told->sn_sender_dry_event.sender_dry_assoc_id == star.ids[k];
	}
	CHECK(seen[0] == 1 && seen[1] == 1);
	FAILS(recv(star.hub, bytes, sizeof bytes, MSG_DONTWAIT), EAGAIN);
	send_plain(&star, 1);
	CHECK(sctp_recvmsg(star.hub, bytes, sizeof bytes, NULL, NULL, NULL, &flags) > 0 && (flags & MSG_NOTIFICATION));
	end(&star);
}

/* The context with messages, and notifications, are options of one association. */
static void receiving_of_one_association(void)
{
	struct star star = star_of(0);
	struct sctp_event event = { .se_assoc_id = star.ids[0], .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
	struct sctp_assoc_value context = { star.ids[0], 42 };
	union sctp_notification *told = (union sctp_notification *)bytes;
	int one = 1, flags = 0;

	CHECK(set(star.hub, SCTP_CONTEXT, &context, sizeof context) == 0);
	context.assoc_id = star.ids[1];
	get(star.hub, SCTP_CONTEXT, &context, sizeof context);
	CHECK(context.assoc_value == 0);
	CHECK(set(star.hub, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
	for (int i = 0; i < PEERS; i++) {
		struct { uint32_t number; sctp_assoc_t ids[8]; } list;
		struct sctp_sndinfo info = { 0 };
		struct sctp_rcvinfo got = { 0 };
		struct iovec out = { "x", 1 }, into = { bytes, sizeof bytes };
		socklen_t size = sizeof got;
		unsigned type = 0;
		get(star.peers[i], SCTP_GET_ASSOC_ID_LIST, &list, sizeof list);
		info.snd_assoc_id = list.ids[0];
		CHECK(sctp_sendv(star.peers[i], &out, 1, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) == 1);
		CHECK(sctp_recvv(star.hub, &into, 1, NULL, NULL, &got, &size, &type, &flags) == 1);
		CHECK(got.rcv_assoc_id == star.ids[i] && got.rcv_context == (i ? 0 : 42));
	}

	CHECK(set(star.hub, SCTP_EVENT, &event, sizeof event) == 0);
	for (int i = 0; i < 3; i++) {
		event.se_assoc_id = i < 2 ? star.ids[i] : SCTP_FUTURE_ASSOC;
		get(star.hub, SCTP_EVENT, &event, sizeof event);
		CHECK(event.se_on == !i);
	}
	/* The end of the second association is not told, that of the first one is. */
	for (int i = PEERS - 1; i >= 0; i--)
		CHECK(sctp_sendmsg(star.hub, "end", 3, SA(star.addresses[i]), sizeof star.addresses[i], 0, SCTP_ABORT, 0, 0, 0) == 3);
	CHECK(recv(star.hub, bytes, sizeof bytes, 0) > 0);
	CHECK(told->sn_header.sn_type == SCTP_ASSOC_CHANGE && told->sn_assoc_change.sac_state == SCTP_COMM_LOST);
	CHECK(told->sn_assoc_change.sac_assoc_id == star.ids[0]);
	usleep(100000);
	FAILS(recv(star.hub, bytes, sizeof bytes, MSG_DONTWAIT), EAGAIN);
	end(&star);
}

int main(void)
{
	receiving_of_one_association();
	defaults_of_one_association();
	scopes();
	refused();
	control_messages();
	messages_to_all(0);
	messages_to_all(1);
	messages_to_all_are_checked();
	dry_at_subscription(0);
	dry_at_subscription(1);
	puts("done");
	return 0;
}
