export type ParameterFormat = 'positional' | 'named'

const braces = /\{\{([^{}]*)\}\}/g

/** The variables of a text, each once: numbers in their order, names in that of their first place. */
export const variablesOf = (text: string): string[] =>
  [...new Set([...text.matchAll(braces)].map(([, name = '']) => name.trim()))].toSorted((a, b) => Number(a) - Number(b))

/** The text with each variable replaced; one without a value stays as it is. */
export const fill = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replace(braces, (whole, name: string) => values.get(name.trim()) ?? whole)

/** How long `fill` makes it, in UTF-16 units. */
export function filledLength(text: string, values: ReadonlyMap<string, string>): number {
  let length = text.length
  for (const [whole, name = ''] of text.matchAll(braces))
    length += (values.get(name.trim()) ?? whole).length - whole.length
  return length
}

const patterns = { positional: /^[1-9]\d*$/, named: /^[a-z][a-z0-9_]*$/ }

/** What is wrong with the variables of a text, by the platform's rules; null when nothing is. */
export function faultOfVariables(text: string, format: ParameterFormat): string | null {
  const names = variablesOf(text)
  if (/\{\{|\}\}/.test(text.replace(braces, ''))) return 'has braces that are not those of a variable'
  if (names.some((name) => !patterns[format].test(name))) {
    return format === 'positional'
      ? 'has a variable that is not a number such as {{1}}; names need parameter_format named'
      : 'has a variable that is not a lower-case name such as {{order_id}}'
  }
  if (/\}\}\s*\{\{/.test(text)) return 'has variables side by side'
  if (format === 'positional' && names.some((_, n) => !names.includes(String(n + 1))))
    return 'must number its variables {{1}}, {{2}} and so on, without a gap'
  return null
}

/** A text that begins or ends with a variable is refused by the platform. */
export const hasVariableAtEdge = (text: string): boolean => /^\{\{|\}\}$/.test(text.trim())
