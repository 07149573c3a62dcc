/** How long the conversations of a dispatcher that died wait; longer calls renew it. */
export const leaseMs = 15_000

/** How far a number may run ahead of its 80 a second. */
export const burstMs = 250
