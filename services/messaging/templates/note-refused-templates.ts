import type { TransactionSql } from '@app/shared/database/database.ts'
import { doubted, goneWords, statusOf } from './statuses.ts'

/** A template send that the platform refused. */
interface RefusedTemplate {
  organizationId: string
  businessAccountId: string
  name: string
  language: string
  /** The platform's code. */
  code: number
  /** When the attempt began; what was heard of the template since is newer than its answer. */
  begunAt: Date
}

/** The platform's codes that tell of the template itself (its error reference). */
const words: ReadonlyMap<number, string> = new Map([
  [132001, doubted],
  [132015, 'PAUSED'],
  [132016, 'DISABLED'],
])

export const tellsOfTemplate = (code: number): boolean => words.has(code)

/** Whoever notes refused templates locks them in this order: else two of them could deadlock. */
const inOrder = (refused: RefusedTemplate[]) => refused.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))

const keyOf = ({ organizationId, businessAccountId, name, language }: RefusedTemplate) =>
  [organizationId, businessAccountId, name, language].join(' ')

/** A refusal may tell of a pause or an end before its callback does: the sends that follow are refused here, or ask first. */
export async function noteRefusedTemplates(tx: TransactionSql, refused: RefusedTemplate[]): Promise<void> {
  for (const { organizationId, businessAccountId, name, language, code, begunAt } of inOrder(refused)) {
    const word = words.get(code)
    if (word === undefined) continue
    await tx`
      update templates set upstream_status = ${word}, status = coalesce(${statusOf(word)}, status), known_at = now(),
        updated_at = now()
      where organization_id = ${organizationId} and business_account_id = ${businessAccountId} and name = ${name}
        and language = ${language} and upstream_status <> ${word} and known_at <= ${begunAt}
        ${word === doubted ? tx`and upstream_status <> all(${goneWords as string[]})` : tx``}
    `
  }
}
