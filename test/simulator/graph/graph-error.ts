import { randomBytes } from 'node:crypto'
import type { Words } from '../words.ts'
import { failureOf } from './error-codes.ts'

interface Detail {
  message?: string | undefined
  details?: string | undefined
  status?: number | undefined
  subcode?: number | undefined
  /** For people, in the management API; localised, so that no program may read them. */
  userTitle?: string
  userMessage?: string
  type?: 'OAuthException' | 'GraphMethodException'
}

/** A refusal in the platform's own shape. */
export class GraphError extends Error {
  override readonly name = 'GraphError'
  readonly code: number
  readonly status: number
  readonly detail: Detail

  constructor(code: number, detail: Detail = {}) {
    const { status, title } = failureOf(code)
    super(detail.message ?? `(#${code}) ${title}`)
    this.code = code
    this.status = detail.status ?? status
    this.detail = detail
  }
}

/** What the Graph API itself says of a parameter, before the message is looked at: `text` follows `(#100) `. */
export const badParameter = (text: string) => new GraphError(100, { message: `(#100) ${text}` })

/** The answer for an id that does not exist, or that the token may not see: the platform does not tell which. */
export const unknownObject = (method: string, id: string) =>
  new GraphError(100, {
    message: `Unsupported ${method.toLowerCase()} request. Object with ID '${id}' does not exist, cannot be loaded due to missing permissions, or does not support this operation. Please read the Graph API documentation at https://developers.facebook.com/docs/graph-api`,
    subcode: 33,
    type: 'GraphMethodException',
  })

export const unknownPath = (path: string) =>
  new GraphError(2500, { message: `Unknown path components: ${path}`, status: 400 })

export function errorBody(err: GraphError, words: Words) {
  const { details, subcode, userTitle, userMessage, type = 'OAuthException' } = err.detail
  return {
    error: {
      message: err.message,
      type,
      code: err.code,
      ...(details !== undefined && { error_data: { messaging_product: words.product, details } }),
      ...(subcode !== undefined && { error_subcode: subcode }),
      ...(userMessage !== undefined && {
        is_transient: false,
        error_user_title: userTitle,
        error_user_msg: userMessage,
      }),
      fbtrace_id: `A${randomBytes(16).toString('base64url')}`,
    },
  }
}

export interface StatusFailure {
  code: number
  details: string
}

/** One of `errors` in a failed status. */
export function failedStatusError({ code, details }: StatusFailure) {
  const { title } = failureOf(code)
  const href = 'https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/'
  return { code, title, message: title, error_data: { details }, href }
}
