import { isIPv4 } from 'node:net'
import { errors } from 'undici'

/** Why nothing came back from an address. */
export type EgressFailure =
  | 'blocked_address'
  | 'dns_error'
  | 'connection_refused'
  | 'connection_failed'
  | 'tls_error'
  | 'timeout'
  | 'invalid_response'

interface EgressErrorOptions extends ErrorOptions {
  /** As in `NamedFailure`. */
  isOurs?: boolean
  /** The call met the end of a connection that was kept from an earlier one (kept-connections.ts). */
  isOfKept?: boolean
}

/** A refusal or a failure of ours on the way out. */
export class EgressError extends Error {
  override readonly name = 'EgressError'
  readonly failure: EgressFailure
  readonly isOurs: boolean
  readonly isOfKept: boolean

  constructor(failure: EgressFailure, message: string, options: EgressErrorOptions = {}) {
    super(message, options)
    this.failure = failure
    this.isOurs = options.isOurs ?? false
    this.isOfKept = options.isOfKept ?? false
  }
}

export interface NamedFailure {
  failure: EgressFailure
  /** For the owner of the address; says nothing about our own network. */
  message: string
  /** Our name server, or our proxy, did not answer, or this host could not call: nothing is held against the address. */
  isOurs: boolean
  /** For the operator: what of ours it was; undefined when it was nothing of ours. */
  ours?: string | undefined
}

const messages: Record<EgressFailure, string> = {
  blocked_address:
    'The address must be https and public, or the operator has to allow its network in EGRESS_ALLOW_CIDRS.',
  dns_error: 'The host name could not be resolved.',
  connection_refused: 'The connection was refused.',
  connection_failed: 'The connection could not be made, or ended before an answer.',
  tls_error: 'The TLS handshake failed.',
  timeout: 'No answer came in time.',
  invalid_response: 'The answer was not valid HTTP.',
}

const byCode: Record<string, EgressFailure> = {
  ENOTFOUND: 'dns_error',
  ENODATA: 'dns_error',
  ESERVFAIL: 'dns_error',
  EREFUSED: 'dns_error',
  EFORMERR: 'dns_error',
  EBADRESP: 'dns_error',
  EBADNAME: 'dns_error',
  ENONAME: 'dns_error',
  ETIMEOUT: 'dns_error',
  EAI_AGAIN: 'dns_error',
  EAI_FAIL: 'dns_error',
  ECONNREFUSED: 'connection_refused',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_OVERFLOW: 'invalid_response',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'invalid_response',
  EPROTO: 'tls_error',
  ECONNRESET: 'connection_failed',
}

/** Names what a dispatcher of egress.ts failed with. */
export function failureOf(err: unknown): NamedFailure {
  const failure = kindOf(err)
  const isOurs = err instanceof EgressError ? err.isOurs : isOfThisHost(err)
  return { failure, message: messageOf(failure, err), isOurs, ...(isOurs && { ours: (err as Error).message }) }
}

/** An expired certificate, one that nobody signed, one of another host, a line's end: its owner mends each in another way. */
function messageOf(failure: EgressFailure, err: unknown): string {
  const detail = failure === 'tls_error' ? tlsFault(err) : failure === 'invalid_response' ? httpFault(err) : ''
  return detail === '' ? messages[failure] : messages[failure].replace('.', ` (${detail}).`)
}

/** OpenSSL has faults that Node has no code for, such as a key that is too short. */
const tlsFault = (err: unknown) => (err instanceof Error && codeOf(err) === 'UNSPECIFIED' ? err.message : codeOf(err))

/** What undici's parser puts in brackets are sentences of its own, never bytes of the answer. */
function httpFault(err: unknown): string {
  if (err instanceof errors.HTTPParserError) return /\(([^()]+)\)$/.exec(err.message)?.[1] ?? ''
  if (err instanceof EgressError) return err.message
  if (isBadUpgrade(err)) return 'it changes to another protocol'
  return httpFaults[codeOf(err)] ?? ''
}

const httpFaults: Record<string, string> = {
  UND_ERR_HEADERS_OVERFLOW: 'its head is longer than 16 KiB',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'two Content-Length, or one beside chunks',
}

/** No socket is left for a call. */
const noSocket = new Set(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])
/** No way leads out. That hosts have none for IPv6 is common, and then it is the address that cannot be reached. */
const noWay = new Set(['ENETDOWN', 'ENETUNREACH', 'EADDRNOTAVAIL'])

/** Of several addresses that were tried one is enough. */
function isOfThisHost(err: unknown): boolean {
  if (err instanceof AggregateError) return err.errors.some(isOfThisHost)
  const code = codeOf(err)
  return noSocket.has(code) || (noWay.has(code) && isIPv4(addressOf(err)))
}

function kindOf(err: unknown): EgressFailure {
  if (err instanceof EgressError) return err.failure
  if (err instanceof Error && err.name === 'TimeoutError') return 'timeout'
  if (err instanceof errors.HTTPParserError || isBadUpgrade(err)) return 'invalid_response'
  const code = codeOf(err)
  if (isOfTls.test(code)) return 'tls_error'
  return byCode[code] ?? 'connection_failed'
}

const isOfTls =
  /^(CERT_|CRL_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|ERROR_IN_CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|UNSPECIFIED$)/

/** 101, which nobody asked for. */
const isBadUpgrade = (err: unknown) => err instanceof errors.SocketError && err.message === 'bad upgrade'

/** Of several addresses that were tried in vain it is that of the first. */
const codeOf = (err: unknown) => (err instanceof Error && 'code' in err ? String(err.code) : '')

const addressOf = (err: unknown) => (err instanceof Error && 'address' in err ? String(err.address) : '')
