/* One association: a thread that reads, a caller that writes. */
#ifndef SESSION_H
#define SESSION_H

#include "options.h"
#include "report.h"

#include <pthread.h>
#include <usrsctp.h>

struct session {
	const struct options *options;
	struct socket *socket;
	struct report report;
	uint8_t *next;            /* buffer for one call of the stack */
	struct partial *partials; /* per stream, what has come of a message */
	uint32_t *expected;       /* per stream, the number of the next message */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool dry;                 /* the peer has all that was sent */
	unsigned outbound;        /* outgoing streams */
	unsigned own_resets;      /* of single outgoing streams, that have ended */
	bool over;                /* nothing will come any more */
};

void session_prepare(struct session *session, const struct options *options);
/* Reads until the association has ended; an argument for pthread_create(). */
void *session_read(void *session);
/* Sends what is to be sent. */
void session_write(struct session *session);
/* Ends it as it is to be ended. */
void session_finish(struct session *session);

#endif
