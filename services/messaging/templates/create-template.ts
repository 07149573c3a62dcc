import type { Caller, Handler, Input } from '@app/shared/api/contract.ts'
import { createTemplate as contract } from '@app/shared/contracts/templates.ts'
import { storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { onceInline } from '@app/shared/idempotency/once-inline.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import { type Asking, readTemplates, submitTemplate } from '../upstream/templates.ts'
import { askAbout } from './ask-about.ts'
import { checkComponents } from './check-components.ts'
import { beginCreation, type Creation, finishCreation, leaveCreation, type Outcome, type Wanted } from './creations.ts'
import { isTaken } from './refusals.ts'
import { isSameContent } from './same-content.ts'
import { goneWords } from './statuses.ts'
import { categoryOf } from './store-templates.ts'
import { deadlineOf, openAccount, type TemplateAccount, toTemplate } from './templates.ts'
import { uploadHeader } from './upload-header.ts'

export const createTemplate: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  if (stored) return stored
  const wanted = wantedOf(body)
  checkComponents(wanted)
  const { organizationId } = caller
  const account = await openAccount(app, { organizationId, phoneNumberId: params.phone_number_id })
  return onceInline<typeof contract, Creation, Outcome | null>(app, contract, caller, {
    begin: (tx, isRetry) => beginCreation(tx, account, wanted, isRetry),
    call: async (creation) => (creation.isSettled ? null : submit(app, account, wanted, creation, caller)),
    finish: async (tx, creation, outcome) => toTemplate(await finishCreation(tx, account, creation, outcome), account),
    giveBack: (tx, creation) => leaveCreation(tx, account, creation),
    isOpen: ({ mayExist }) => mayExist,
  })
}

const wantedOf = (body: Input<typeof contract>['body']): Wanted => ({
  name: body.name,
  language: body.language,
  category: body.category,
  format: body.parameter_format?.toLowerCase() === 'named' ? 'named' : 'positional',
  components: body.components,
})

/** Of the organization's own account. */
type AskingOwn = Asking & Pick<TemplateAccount, 'organizationId'>

async function submit(
  app: App,
  account: TemplateAccount & { token: string },
  wanted: Wanted,
  creation: Creation,
  caller: Caller,
): Promise<Outcome> {
  const asking = { ...account, deadline: deadlineOf(caller) }
  const send = async () => {
    const earlier = creation.isRetry ? await adopt(app, asking, wanted, creation) : null
    return earlier ?? (await submitNew(app, asking, wanted, creation))
  }
  return askAbout(app, asking, send, wanted.components)
}

async function submitNew(app: App, asking: AskingOwn, wanted: Wanted, creation: Creation): Promise<Outcome> {
  const { name, language, category, format } = wanted
  const components = await uploadHeader(app, asking, wanted.components)
  creation.mayExist = true
  try {
    const submission = { name, language, category, parameter_format: format, components }
    const { id, status, category: given } = await submitTemplate(app.upstream, asking, submission)
    return { providerTemplateId: id, upstreamStatus: status, category: categoryOf(given ?? category), components }
  } catch (err) {
    // The earlier try may have reached the platform after it was looked for.
    const late = creation.isRetry && isTaken(err) ? await adopt(app, asking, wanted, creation) : null
    if (late) return late
    creation.mayExist = !(err instanceof UpstreamRefusal)
    throw err
  }
}

/** The template of an earlier try, when the platform has it; one of that name that says something else is not ours. */
async function adopt(app: App, asking: Asking, wanted: Wanted, creation: Creation): Promise<Outcome | null> {
  const { name, language, components } = wanted
  const named = await readTemplates(app.upstream, asking, name)
  creation.mayExist = false
  const found = named.find((one) => one.language === language && !goneWords.includes(one.status))
  if (!found) return null
  if (!isSameContent(components, found.components)) throw new Problem('template_already_exists', { param: 'name' })
  creation.mayExist = true
  return {
    providerTemplateId: found.id,
    upstreamStatus: found.status,
    category: categoryOf(found.category),
    components: found.components,
  }
}
