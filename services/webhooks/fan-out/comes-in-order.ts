import type { Delivered } from '@app/shared/events/events.ts'
import { consumers } from '@app/shared/events/provision.ts'

const inOrderSubject = consumers.webhooksInOrder.subject.replace('>', '')

/** Whether an event comes by the consumer that gives out one at a time. */
export const comesInOrder = ({ subject, headers }: Pick<Delivered, 'subject' | 'headers'>): boolean =>
  headers.line !== undefined && subject.startsWith(inOrderSubject)

/** One event comes by one of them. */
export const fanOutConsumers = [consumers.webhooksFanOut.name, consumers.webhooksInOrder.name]
