import { consume, type Consuming } from '@app/shared/events/consume.ts'
import { marketingStopped } from '@app/shared/contracts/messaging-changes.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { setPreferences } from './record-preferences.ts'

/** The platform refused a marketing message since its recipient wants none: as good as the recipient's own word. */
export const consumeMarketingStops = (app: DataService): Consuming =>
  consume(app, consumers.directoryMarketingStops.name, marketingStopped, async (tx, { contact_id, at }, headers) => {
    await setPreferences(tx, [{ organization_id: headers.organization, contact_id, value: 'stop', at }])
  })
