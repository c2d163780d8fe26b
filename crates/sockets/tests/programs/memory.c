/* Calls with memory of exactly the length that they are told, so that an address sanitizer finds every byte beyond it, and
 * calls with pointers and lengths that no correct program passes. */
#include "common.h"
#include <sys/sendfile.h>

enum { LONGEST = 60, NAMES = 140, OPTION_ROOM = 200 };

static const char text[LONGEST] = "the bytes of a message, which is longer than some buffers";
static int ends[2];

/* Memory of its own of this length, with these bytes. */
static void *copy(const void *from, size_t length)
{
	void *memory = malloc(length);
	CHECK(memory != NULL || length == 0);
	if (length > 0)
		memcpy(memory, from, length);
	return memory;
}

static void *zeros(size_t length)
{
	static const char none[4096];
	CHECK(length <= sizeof none);
	return copy(none, length);
}

static void names_fit_into_their_buffers(void)
{
	for (socklen_t room = 0; room < 40; room++) {
		struct sockaddr *name = zeros(room);
		socklen_t length = room;
		CHECK(getsockname(ends[0], name, &length) == 0 && length == sizeof(struct sockaddr_in));
		length = room;
		CHECK(getpeername(ends[1], name, &length) == 0 && length == sizeof(struct sockaddr_in));
		CHECK(room < 2 || name->sa_family == AF_INET);
		free(name);
	}
}

/* One message for each way to receive it, into `room` bytes of an allocation of that length. */
static ssize_t received(int way, char *into, size_t room, struct sockaddr *from, socklen_t *from_length)
{
	/* The first half is an allocation of its own. */
	struct iovec vector[2] = { { copy(into, room / 2), room / 2 }, { into, room - room / 2 } };
	struct mmsghdr all[2] = { 0 };
	struct sctp_sndrcvinfo *info = zeros(sizeof *info);
	struct sctp_rcvinfo *known = zeros(sizeof *known);
	socklen_t known_length = sizeof *known;
	unsigned type = 0;
	int flags = 0, one = 1;
	ssize_t got = -1;
	all[0].msg_hdr = (struct msghdr){ .msg_iov = vector, .msg_iovlen = 2 };
	switch (way) {
	case 0: got = read(ends[1], into, room); break;
	case 1: got = recv(ends[1], into, room, 0); break;
	case 2: got = recvfrom(ends[1], into, room, 0, from, from_length); break;
	case 3: got = readv(ends[1], vector, 2); break;
	case 4: got = recvmsg(ends[1], &all[0].msg_hdr, 0); break;
	case 5:
		CHECK(recvmmsg(ends[1], all, 1, 0, NULL) == 1);
		got = all[0].msg_len;
		break;
	case 6: got = sctp_recvmsg(ends[1], into, room, from, from_length, info, &flags); break;
	case 7:
		CHECK(setsockopt(ends[1], SOL_SCTP, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
		got = sctp_recvv(ends[1], vector, 2, from, from_length, known, &known_length, &type, &flags);
		CHECK(type == SCTP_RECVV_RCVINFO && known_length == sizeof *known);
		one = 0;
		CHECK(setsockopt(ends[1], SOL_SCTP, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
	}
	free(vector[0].iov_base);
	free(info);
	free(known);
	return got;
}

/* One message by each way to send it. */
static ssize_t sent(int way, const char *message, size_t length)
{
	struct iovec vector[2] = { { (void *)message, length / 2 }, { (char *)message + length / 2, length - length / 2 } };
	struct mmsghdr all[2] = { 0 };
	struct sctp_sndrcvinfo *info = zeros(sizeof *info);
	struct sctp_sndinfo *how = zeros(sizeof *how);
	struct sctp_sendv_spa *complete = zeros(sizeof *complete);
	ssize_t done = -1;
	all[0].msg_hdr = (struct msghdr){ .msg_iov = vector, .msg_iovlen = 2 };
	complete->sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID;
	switch (way) {
	case 0: done = write(ends[0], message, length); break;
	case 1: done = send(ends[0], message, length, 0); break;
	case 2: done = sendto(ends[0], message, length, 0, NULL, 0); break;
	case 3: done = writev(ends[0], vector, 2); break;
	case 4: done = sendmsg(ends[0], &all[0].msg_hdr, 0); break;
	case 5:
		CHECK(sendmmsg(ends[0], all, 1, 0) == 1);
		done = all[0].msg_len;
		break;
	case 6: done = sctp_send(ends[0], message, length, info, 0); break;
	case 7: done = sctp_sendmsg(ends[0], message, length, NULL, 0, 0, 0, 0, 0, 0); break;
	case 8: done = sctp_sendv(ends[0], vector, 2, NULL, 0, how, sizeof *how, SCTP_SENDV_SNDINFO, 0); break;
	case 9: done = sctp_sendv(ends[0], vector, 2, NULL, 0, complete, sizeof *complete, SCTP_SENDV_SPA, 0);
	}
	free(info);
	free(how);
	free(complete);
	return done;
}

static void messages_fit_into_their_buffers(void)
{
	for (int way = 0; way < 10; way++) {
		for (size_t length = 1; length < LONGEST; length += 7) {
			for (size_t room = length > 3 ? length - 3 : 1; room < length + 3; room++) {
				char *message = copy(text, length), *into = zeros(room);
				/* The sanitizer's own check of `recvmsg` takes the length that is told for what is written. */
				socklen_t from_length = way % 8 == 2 ? (socklen_t)(room % 20) : sizeof(struct sockaddr_in);
				struct sockaddr *from = zeros(from_length);
				CHECK(sent(way, message, length) == (ssize_t)length);
				free(message);
				ssize_t got = received(way % 8, into, room, from, &from_length);
				CHECK(got == (ssize_t)(room < length ? room : length));
				if (room < length) {
					char rest[LONGEST];
					CHECK(read(ends[1], rest, sizeof rest) == (ssize_t)(length - room));
				}
				free(into);
				free(from);
			}
		}
	}
}

static void control_messages_fit_into_their_buffers(void)
{
	struct sctp_event_subscribe events = { .sctp_data_io_event = 1 };
	int one = 1;
	CHECK(setsockopt(ends[1], SOL_SCTP, SCTP_EVENTS, &events, sizeof events) == 0);
	CHECK(setsockopt(ends[1], SOL_SCTP, SCTP_RECVRCVINFO, &one, sizeof one) == 0);
	CHECK(setsockopt(ends[1], SOL_SCTP, SCTP_RECVNXTINFO, &one, sizeof one) == 0);
	for (size_t room = 0; room < 180; room += 3) {
		char byte;
		struct iovec vector = { &byte, 1 };
		struct msghdr header = { .msg_iov = &vector, .msg_iovlen = 1, .msg_controllen = room };
		header.msg_control = zeros(room);
		void *control = header.msg_control;
		CHECK(write(ends[0], "x", 1) == 1);
		CHECK(recvmsg(ends[1], &header, 0) == 1 && header.msg_controllen <= room);
		CHECK((header.msg_flags & MSG_CTRUNC) == 0 || room < 140);
		free(control);
		/* What is sent may end anywhere, and its own length may be wrong. */
		struct cmsghdr *sent_control = zeros(room);
		header = (struct msghdr){ .msg_iov = &vector, .msg_iovlen = 1, .msg_control = sent_control, .msg_controllen = room };
		for (size_t told = 0; room >= sizeof *sent_control && told < room + 5; told++) {
			*sent_control = (struct cmsghdr){ .cmsg_level = IPPROTO_SCTP, .cmsg_type = (int)(told % 10), .cmsg_len = told };
			if (sendmsg(ends[0], &header, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
				CHECK(read(ends[1], &byte, 1) == 1);
		}
		free(sent_control);
	}
}

/* Every option with values of every length. Those that open or end something are left out. */
static void options_fit_into_their_buffers(void)
{
	int fresh = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	int both[2] = { ends[0], fresh };
	for (int name = 0; name < NAMES; name++) {
		if (name == SCTP_SOCKOPT_CONNECTX || name == SCTP_SOCKOPT_CONNECTX3 || name == SCTP_SOCKOPT_CONNECTX_OLD)
			continue;
		for (socklen_t room = 0; room < OPTION_ROOM; room++) {
			for (int i = 0; i < 2; i++) {
				void *value = zeros(room);
				socklen_t length = room;
				if (getsockopt(both[i], SOL_SCTP, name, value, &length) == 0)
					CHECK(length <= room);
				length = room;
				if (room > 0 && sctp_opt_info(both[i], 0, name, value, &length) == 0)
					CHECK(length <= room);
				memset(value, 0, room);
				setsockopt(fresh, SOL_SCTP, name, value, room);
				free(value);
			}
		}
	}
	CHECK(close(fresh) == 0);
}

static void addresses_fit_into_their_buffers(void)
{
	struct sockaddr_in two[2] = { loopback(0), loopback(0) }, address;
	two[1].sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	struct sockaddr *packed = copy(two, sizeof two), *told = NULL;
	int fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	FAILS(sctp_bindx(fd, packed, 2, 9), EINVAL);
	FAILS(sctp_bindx(fd, packed, 0, SCTP_BINDX_ADD_ADDR), EINVAL);
	CHECK(sctp_bindx(fd, packed, 2, SCTP_BINDX_ADD_ADDR) == 0);
	CHECK(sctp_bindx(fd, packed, 1, SCTP_BINDX_REM_ADDR) == 0);
	free(packed);
	CHECK(close(fd) == 0);
	CHECK(sctp_getpaddrs(ends[0], 0, &told) == 1 && told->sa_family == AF_INET);
	CHECK(sctp_freepaddrs(told) == 0);
	CHECK(sctp_getladdrs(ends[0], 0, &told) >= 1 && told->sa_family == AF_INET);
	CHECK(sctp_freeladdrs(told) == 0);
	int server = listener(SOCK_SEQPACKET, &address);
	packed = copy(&address, sizeof address);
	sctp_assoc_t id = 0;
	fd = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	CHECK(sctp_connectx(fd, packed, 1, &id) == 0 && id > 0);
	struct iovec vector = { "x", 1 };
	CHECK(sctp_sendv(fd, &vector, 1, packed, 1, NULL, 0, SCTP_SENDV_NOINFO, 0) == 1);
	free(packed);
	CHECK(close(fd) == 0);
	CHECK(close(server) == 0);
}

static void files_and_streams_carry_bytes(void)
{
	char got[LONGEST];
	off_t at = 4;
	FILE *file = tmpfile();
	CHECK(file != NULL && fwrite(text, 1, 20, file) == 20 && fflush(file) == 0);
	CHECK(sendfile(ends[0], fileno(file), &at, 100) == 16 && at == 20);
	CHECK(read(ends[1], got, sizeof got) == 16 && memcmp(got, text + 4, 16) == 0);
	fclose(file);
	int near = dup(ends[0]), far = dup(ends[1]);
	FILE *out = fdopen(near, "w"), *in = fdopen(far, "r");
	CHECK(out != NULL && in != NULL);
	CHECK(fprintf(out, "line %d\n", 7) == 7 && fclose(out) == 0);
	CHECK(fgets(got, sizeof got, in) == got && strcmp(got, "line 7\n") == 0);
	fclose(in);
}

/* The kernel refuses these, and so does the library: nothing is read or written where the program has no memory. */
static void wrong_pointers_and_lengths_are_refused(void)
{
	volatile size_t huge = SIZE_MAX;
	void *volatile nothing = NULL;
	char byte = 0, *overlapping = zeros(4);
	struct iovec many[1025] = { { 0 } }, vector[2] = { { &byte, huge }, { &byte, 1 } };
	struct msghdr header = { .msg_iov = vector, .msg_iovlen = 2 };
	FAILS(write(ends[0], &byte, huge), EMSGSIZE);
	FAILS(send(ends[0], &byte, huge / 2, 0), EMSGSIZE);
	FAILS(sendto(ends[0], &byte, huge / 3, 0, NULL, 0), EMSGSIZE);
	FAILS(sendmsg(ends[0], &header, 0), EMSGSIZE);
	FAILS(writev(ends[0], many, 1025), EMSGSIZE);
	FAILS(writev(ends[0], nothing, 1), EFAULT);
	FAILS(readv(ends[0], nothing, 1), EFAULT);
	FAILS(sendmsg(ends[0], nothing, 0), EFAULT);
	FAILS(recvmsg(ends[0], nothing, 0), EFAULT);
	FAILS(sendmmsg(ends[0], nothing, 2, 0), EFAULT);
	FAILS(recvmmsg(ends[0], nothing, 2, 0, NULL), EFAULT);
	FAILS(ioctl(ends[0], FIONREAD, nothing), EFAULT);
	header = (struct msghdr){ .msg_iov = vector + 1, .msg_iovlen = 1, .msg_control = &byte, .msg_controllen = huge };
	FAILS(sendmsg(ends[0], &header, 0), ENOBUFS);
	socklen_t length = 2;
	FAILS(sctp_opt_info(ends[0], 0, SCTP_STATUS, &byte, &length), EINVAL);
	FAILS(sctp_opt_info(ends[0], 0, SCTP_STATUS, nothing, &length), EINVAL);
	FAILS(getsockopt(ends[0], SOL_SCTP, SCTP_STATUS, &byte, nothing), EFAULT);
	/* Two buffers in the same place, and one that is called longer than it is. */
	vector[0] = (struct iovec){ overlapping, 3 };
	vector[1] = (struct iovec){ overlapping + 1, 3 };
	CHECK(write(ends[0], "abcdef", 6) == 6 && readv(ends[1], vector, 2) == 6);
	CHECK(memcmp(overlapping, "adef", 4) == 0);
	CHECK(write(ends[0], "four", 4) == 4 && read(ends[1], overlapping, huge / 4) == 4);
	CHECK(memcmp(overlapping, "four", 4) == 0);
	free(overlapping);
}

int main(void)
{
	connected(ends);
	names_fit_into_their_buffers();
	messages_fit_into_their_buffers();
	files_and_streams_carry_bytes();
	wrong_pointers_and_lengths_are_refused();
	addresses_fit_into_their_buffers();
	options_fit_into_their_buffers();
	control_messages_fit_into_their_buffers();
	CHECK(close(ends[0]) == 0);
	CHECK(close(ends[1]) == 0);
	puts("done");
	return 0;
}
