import { Problem } from '@app/shared/api/problem.ts'
import { lengthOf } from '@app/shared/contracts/fields.ts'
import { fill, filledLength } from './variables.ts'

/** In code points, what the platform takes. */
const maxBodyLength = 32_768
/** As JSON: a page of 100 such messages fits into one answer on the bus, of 8 MiB. */
const maxBodyBytes = 64 * 1024

/**
 * The body's text with its values, which `param` has: a variable may stand there many times.
 * @throws `invalid_field_value` when it is too long.
 */
export function fillBody(body: string, values: ReadonlyMap<string, string>, param: string): string {
  // It has a byte for each of these at least, and one of many megabytes is not even made.
  const text = filledLength(body, values) > maxBodyBytes ? undefined : fill(body, values)
  if (text !== undefined && lengthOf(text) <= maxBodyLength && bytesOf(text) <= maxBodyBytes) return text
  const most = `${maxBodyLength.toLocaleString('en-US')} characters, or ${maxBodyBytes / 1024} KiB`
  throw new Problem('invalid_field_value', {
    param,
    message: `${param}: with its values the body of the template is longer than ${most}.`,
  })
}

/** Without the quotes. */
const bytesOf = (text: string) => Buffer.byteLength(JSON.stringify(text)) - 2
