import { consume, type Consuming } from '@app/shared/events/consume.ts'
import { accountChanged } from '@app/shared/contracts/platform.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { storeAccount } from './put-account.ts'

/** The event tells again what `putAccount` was told, for the time when directory was away. */
export const consumeAccounts = (app: DataService): Consuming =>
  consume(app, consumers.directoryAccounts.name, accountChanged, async (tx, state) => {
    await storeAccount(tx, state)
  })
