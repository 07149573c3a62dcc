import type { Core } from '../app.ts'
import { askAs } from '../senders/report-account.ts'
import type { Component } from './check-components.ts'
import { refusalOf } from './refusals.ts'
import type { TemplateAccount } from './templates.ts'

/**
 * Asks the platform about an account's templates: what it refuses becomes our failure, and platform hears of what bears on the account.
 * `components`: those that are submitted.
 */
export async function askAbout<T>(
  core: Core,
  account: TemplateAccount & { deadline: number },
  ask: () => Promise<T>,
  components?: readonly Component[],
): Promise<T> {
  try {
    return await askAs(core, account, ask)
  } catch (err) {
    throw refusalOf(err, components)
  }
}
