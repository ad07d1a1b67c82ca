#ifndef STEPS_H
#define STEPS_H

#include "msgpack.h"

// steps carries out the steps of an array, and writes the array of their
// reports. message is the input of the entry.
void steps(writer *w, value message, value object, value list);

// request writes the report of the step request.
void request(writer *w, value message, value step);

// operate carries out an operation by its name, and writes its report.
void operate(writer *w, value name, value req);

// text_at writes a key with a string, if it is one; put_key writes the name of an
// object.
void text_at(writer *w, const char *name, value v);
void put_key(writer *w, value k);

// manifest writes what describe returns.
void manifest(writer *w);

#endif
