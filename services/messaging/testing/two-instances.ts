import { startTwoInstances } from '@app/test/two-instances.ts'
import { createKnownConversations } from '../sends/known-conversations.ts'
import { createKnownTemplates } from '../templates/known-templates.ts'
import { startInstance, testMessaging } from './app.ts'

/** Two instances of messaging, of which the second one has nothing in mind that the first one knows. */
export const twoInstances = () =>
  startTwoInstances('messaging', testMessaging, (first, sql) => {
    const known = createKnownConversations({ wholeSince: () => -Infinity })
    return startInstance({ ...first, sql, known, templates: createKnownTemplates(sql) })
  })
