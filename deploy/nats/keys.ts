import { nkeys } from 'nats'

/** A new user's secret: what it signs the server's challenge with. */
export const newSeed = (): string => Buffer.from(nkeys.createUser().getSeed()).toString()

/** What the server knows the user by. */
export const publicKeyOf = (seed: string): string => nkeys.fromSeed(Buffer.from(seed)).getPublicKey()
