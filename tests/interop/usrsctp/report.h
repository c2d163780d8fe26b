/* What happened, as one JSON document on the last line of stdout. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report {
	uint64_t sent_messages, sent_bytes;
	uint64_t received_messages, received_bytes;
	uint64_t wrong;           /* messages that were not what they should be, or out of order */
	uint64_t measured_bytes;  /* received after the warm-up */
	double first_at, warm_at, last_at;
	unsigned restarts;
	char ended[32];
};

double now_s(void);
/* Names an event; kept until the report is printed. */
void event(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_report(const struct report *report);

#endif
