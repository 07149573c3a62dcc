const prefix = '_INBOX_'

/** Where the answers to a user of the bus come: nobody else may listen there. */
export const inboxOf = (user: string): string => `${prefix}${user}`

/** Whether an answer may go there. Elsewhere it would be said in the name of who answers: as an event of its own. */
export const isInbox = (reply: string | undefined): boolean => reply?.startsWith(prefix) ?? false
