/**
 * How long the conversations of a dispatcher that died wait; while a call takes longer its lease is renewed. It is longer than elsewhere:
 * of a dispatcher that was merely slow to renew, the next holder would take calls for lost whose answers are still to come.
 */
export const leaseMs = 15_000

/** How far a number may run ahead of its 80 a second. */
export const burstMs = 250
