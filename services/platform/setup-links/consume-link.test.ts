import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockCustomer } from '../customers/customers.ts'
import { getCustomer } from '../customers/get-customer.ts'
import { updateCustomer } from '../customers/update-customer.ts'
import {
  ask,
  eventsOf,
  newCustomer,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'
import { consumeLink } from './consume-link.ts'
import { createSetupLink } from './create-setup-link.ts'
import { findLinkByToken, type Link } from './find-link.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  it = await startTestApp()
  peers = await startPeers(it.app)
})
afterAll(async () => {
  await peers.stop()
  await it.close()
})

async function customerWithLinks(count: number) {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  const asOwner = { params: { id }, caller: systemCaller(organizationId) }
  const links: Link[] = []
  for (let n = 0; n < count; n++) {
    const { setup_url } = await ask(it.app, createSetupLink, {}, asOwner)
    const link = await findLinkByToken(it.app.sql, setup_url.slice(setup_url.lastIndexOf('/') + 1))
    if (link) links.push(link)
  }
  return { organizationId, id, asOwner, links }
}

/** Makes the account as onboarding does, and consumes, in one transaction. */
function connectThrough(link: Link | undefined) {
  if (!link) throw new Error('no link')
  const [accountId, phoneNumberId] = [newId('acc'), newPhoneNumberId()]
  const { organizationId, customerId, teamId } = link
  const phoneNumber = '+15550783881'
  const consumed = it.app.sql.begin(async (tx) => {
    await tx`select id from organizations where id = ${organizationId} for no key update`
    await tx`
      insert into accounts (organization_id, id, phone_number_id, business_account_id, team_id, customer_id, status)
      values (${organizationId}, ${accountId}, ${phoneNumberId}, '900900', ${teamId}, ${customerId}, 'onboarding')
    `
    return consumeLink(tx, link, { accountId, phoneNumberId, phoneNumber })
  })
  return { consumed, accountId, phoneNumberId }
}

test('the first number onboards its customer; a later one consumes its link alone', async () => {
  const { organizationId, id, asOwner, links } = await customerWithLinks(2)
  const first = connectThrough(links[0])
  await first.consumed
  expect(await ask(it.app, getCustomer, undefined, asOwner)).toMatchObject({ status: 'active' })
  const second = connectThrough(links[1])
  await second.consumed
  const events = (await eventsOf(it.app, organizationId)).slice(3)
  expect(events).toMatchObject([
    { type: 'customer.onboarded', line: id, phone: first.phoneNumberId },
    { type: 'customer.setup_link.consumed', line: id, phone: first.phoneNumberId },
    {
      type: 'customer.setup_link.consumed',
      line: id,
      phone: second.phoneNumberId,
      data: { setup_link: { id: links[1]?.id }, phone_number_id: second.phoneNumberId },
    },
  ])
  expect(events[0]?.data).toEqual({
    customer_id: id,
    account_id: first.accountId,
    phone_number_id: first.phoneNumberId,
    phone_number: '+1 555 078 3881',
  })
  expect(events[1]?.data).toEqual({
    customer_id: id,
    account_id: first.accountId,
    phone_number_id: first.phoneNumberId,
    setup_link: {
      id: links[0]?.id,
      object: 'customer_setup_link',
      customer_id: id,
      status: 'consumed',
      token_last4: links[0]?.tokenLast4,
      expires_at: links[0]?.expiresAt.toISOString(),
      consumed_at: expect.any(String),
      success_redirect_url: null,
      failure_redirect_url: null,
      created_at: links[0]?.createdAt.toISOString(),
    },
  })
})

test('of two numbers through one link at once one is connected, and nothing stays of the other', async () => {
  const { organizationId, asOwner, links } = await customerWithLinks(1)
  const results = await Promise.allSettled([1, 2].map(() => connectThrough(links[0]).consumed))
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  const lost = results.find((result) => result.status === 'rejected')
  expect(lost?.reason).toMatchObject({ failure: 'setup_link_inactive' })
  expect((await ask(it.app, getCustomer, undefined, asOwner)).accounts).toHaveLength(1)
  expect(await eventsOf(it.app, organizationId)).toHaveLength(4)
})

test('two links of a pending customer at once onboard it once', async () => {
  const { organizationId, links } = await customerWithLinks(2)
  await Promise.all(links.map((link) => connectThrough(link).consumed))
  const types = (await eventsOf(it.app, organizationId)).map(({ type }) => type).slice(3)
  expect(types).toEqual(['customer.onboarded', 'customer.setup_link.consumed', 'customer.setup_link.consumed'])
})

test('what became of link and customer after the page was opened is seen', async () => {
  const { asOwner, links } = await customerWithLinks(2)
  const [revoked, open] = links
  await it.app.sql`update setup_links set status = 'revoked' where id = ${revoked?.id ?? ''}`
  await expect(connectThrough(revoked).consumed).rejects.toMatchObject({ failure: 'setup_link_inactive' })
  await ask(it.app, updateCustomer, { status: 'suspended' }, asOwner)
  await expect(connectThrough(open).consumed).rejects.toMatchObject({ failure: 'customer_suspended' })
})

test('a link that is revoked just when it is consumed stays revoked, and connects nothing', async () => {
  const { asOwner, links } = await customerWithLinks(1)
  const [link] = links
  const { consumed } = await it.app.sql.begin(async (tx) => {
    await tx`update setup_links set status = 'revoked' where id = ${link?.id ?? ''}`
    const { consumed } = connectThrough(link)
    await untilSomebodyWaits(it.app.sql)
    return { consumed: consumed.catch((err: unknown) => err) }
  })
  expect(await consumed).toMatchObject({ failure: 'setup_link_inactive' })
  expect((await ask(it.app, getCustomer, undefined, asOwner)).accounts).toEqual([])
})

test('a consumption waits for what changes its customer, so that no event of the customer comes between', async () => {
  const { organizationId, id, links } = await customerWithLinks(2)
  await connectThrough(links[0]).consumed
  const { consumed } = await it.app.sql.begin(async (tx) => {
    await lockCustomer(tx, organizationId, id)
    const { consumed } = connectThrough(links[1])
    const waits = untilSomebodyWaits(it.app.sql).then(() => 'it waits')
    expect(await Promise.race([consumed, waits])).toBe('it waits')
    return { consumed }
  })
  await consumed
})
