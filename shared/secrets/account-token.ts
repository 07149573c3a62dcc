import type { KeyRing } from '../service/environment.ts'
import { seal, unseal } from './seal.ts'

/** What the platform's token for an account is sealed for: our platform service seals it, and messaging opens it, too. */
export const boundToAccount = (accountId: string): string => `account:${accountId}`

export const sealToken = (keys: KeyRing, token: string, accountId: string): string =>
  seal(keys, token, boundToAccount(accountId))

export const unsealToken = (keys: KeyRing, sealedToken: string, accountId: string): string =>
  unseal(keys, sealedToken, boundToAccount(accountId))
