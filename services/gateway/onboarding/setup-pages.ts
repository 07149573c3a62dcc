import type { getSetup } from '@app/shared/contracts/onboarding.ts'
import type { z } from 'zod'
import { isolated } from './isolate-name.ts'
import { pageFile, renderPage } from './render-page.ts'
import type { Signup } from './signup-settings.ts'

type Setup = z.output<typeof getSetup.answer>

/** A page and how it is answered. */
export interface Page {
  status: number
  body: Buffer
  /** Whether it opens the platform's dialog. */
  opensDialog: boolean
}

const connectTemplate = pageFile('connect.html').toString()
const messageTemplate = pageFile('message.html').toString()

/** With the hour: a link may be good for one. */
const timeOf = (time: string) =>
  `${new Date(time).toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' })} UTC`

interface Message {
  status: number
  title: string
  text: string
  /** A way on: the text of the link and where it leads. */
  action?: string
  url?: string | null
  folder?: string
}

function messagePage({ status, title, text, action = '', url = null, folder = 'setup/' }: Message): Page {
  const body = renderPage(messageTemplate, {
    title,
    text,
    action,
    url: url ?? '',
    folder,
    hidden: url === null ? 'hidden' : '',
  })
  return { status, body, opensDialog: false }
}

/** `folder` is that of the page's files, as seen from where it is shown. */
export const unknownLink = (folder = 'setup/') =>
  messagePage({
    folder,
    status: 404,
    title: 'This link does not work',
    text: 'It may be incomplete. Please open it again from where you got it, or ask for a new one.',
  })

export const noCookie = () =>
  messagePage({
    status: 404,
    title: 'Please open your link again',
    text: 'This page needs the link that you got, and a cookie that keeps it while you are here.',
  })

export const unavailable = () =>
  messagePage({
    status: 503,
    title: 'Not available at the moment',
    text: 'Your link is fine. Please load this page again in a minute.',
  })

export const askedTooOften = () =>
  messagePage({
    status: 429,
    title: 'Please wait a moment',
    text: 'Your link is fine. Your network has asked for this page too often: please load it again in a minute.',
  })

/** What a link shows now. */
export function setupPage(given: Setup, signup: Signup): Page {
  const setup = {
    ...given,
    organization_name: isolated(given.organization_name),
    customer_name: isolated(given.customer_name),
  }
  const { organization_name: organization, state } = setup
  const ask = `Please ask ${organization} for a new one.`
  switch (state) {
    case 'expired':
      return messagePage({
        status: 410,
        title: 'This link has expired',
        text: `It was good until ${timeOf(setup.expires_at)}. ${ask}`,
      })
    case 'revoked':
      return messagePage({ status: 410, title: 'This link was withdrawn', text: `It cannot be used any more. ${ask}` })
    case 'consumed':
      return usedPage(setup)
    case 'refused':
      return messagePage({
        status: 403,
        title: 'No number can be connected at the moment',
        text: `Please ask ${organization} about it. Your link stays as it is.`,
      })
    case 'active':
      return signup.configId === undefined ? notConfigured(organization) : connectPage(setup, signup, signup.configId)
  }
}

function usedPage({ organization_name: organization, number, success_url: url }: Setup) {
  const last4 = number?.phone_number?.replaceAll(/\D/g, '').slice(-4)
  const which = last4 === undefined ? 'A number' : `The number that ends in ${last4}`
  const standing = number?.registered
    ? `is connected to ${organization}.`
    : `was connected to ${organization}, which may still have to register it.`
  return messagePage({
    status: 410,
    title: 'This link has been used',
    text: `${which} ${standing} For another number, please ask ${organization} for a new link.`,
    action: `Continue to ${organization}`,
    url,
  })
}

const notConfigured = (organization: string) =>
  messagePage({
    status: 503,
    title: 'Numbers cannot be connected here yet',
    text: `Please tell ${organization}: the service has no signup configuration of the platform.`,
  })

function connectPage(setup: Setup, signup: Signup, config: string): Page {
  const body = renderPage(connectTemplate, {
    organization: setup.organization_name,
    customer: setup.customer_name,
    link: setup.setup_link_id,
    expires: timeOf(setup.expires_at),
    expires_at: setup.expires_at,
    cancelled: setup.cancelled_url ?? '',
    failed: setup.failed_url ?? '',
    script: signup.scriptUrl,
    origins: signup.origins.join(' '),
    app: signup.appId,
    extras: signup.extras,
    version: signup.apiVersion,
    config,
  })
  return { status: 200, body, opensDialog: true }
}
