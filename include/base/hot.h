/* SPDX-License-Identifier: PostgreSQL
 * hot.h: marks for functions: what runs for every statement, for every transaction, or hardly ever.
 * Runs in: every process. A proxy shares its processors with the kernel's work for it and with
 * servers: what it ran for the last statement has left the nearest caches when the next one comes.
 * So it counts how many pages and cache lines of code a statement goes through, more than how many
 * instructions. Functions marked HOT lie side by side in the program, those marked WARM behind
 * them: a balanced select goes through 16 pages of them instead of 46. Calls of what is marked COLD
 * are taken for unlikely, and the code in front of them is put out of the way.
 * What is seldom needed, and has room for much (an error, a decision), stands apart from what most
 * statements run: its room would lie between their callers' and that of what they call, and what is
 * touched of the stack is touched twice as far.
 * `test/bench/instructions --functions` counts, and says which functions want a mark. */
#ifndef PGP_BASE_HOT_H
#define PGP_BASE_HOT_H

#define HOT  __attribute__((hot))
#define COLD __attribute__((cold))
/* Not made part of its caller. */
#define APART __attribute__((noinline))
/* The linkers' own scripts put sections of this name behind those of HOT. */
#define WARM __attribute__((section(".text.sorted.1")))

#endif
