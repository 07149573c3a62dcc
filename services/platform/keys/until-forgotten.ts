import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Gateways keep what `authenticateKey` answered for 2 s, counted from when they asked; who asked before a commit has
 * forgotten it by then. The rest is for timers, which may be some ms early.
 */
const forgottenMs = 2_050

/** Called after a commit: waits until no gateway goes by what was true before it. */
export const untilForgotten = (): Promise<void> => sleep(forgottenMs)
