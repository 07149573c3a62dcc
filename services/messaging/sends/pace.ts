/**
 * How long the conversations of a dispatcher that died wait; longer calls renew it. Longer than elsewhere: of one that was merely slow to
 * renew it the next holder would take a call for lost whose answer is still to come.
 */
export const leaseMs = 15_000

/** How far a number may run ahead of its 80 a second. */
export const burstMs = 250
