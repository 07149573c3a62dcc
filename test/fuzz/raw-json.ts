/** JSON text that no value of JavaScript makes: `1e400`, a key twice. */
export class RawJson {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** The value as JSON, with every `RawJson` in it as it is. */
export function toJsonText(value: unknown): string {
  if (value instanceof RawJson) return value.text
  if (Array.isArray(value)) return `[${value.map(toJsonText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const pairs = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${toJsonText(item)}`)
  return `{${pairs.join(',')}}`
}
