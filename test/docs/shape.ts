/** What differs between a shown answer and a real one, each with its place; none when the one stands for the other. */
export function differences(shown: unknown, real: unknown, place = '$'): string[] {
  if (typeof shown === 'string') return isLike(shown, real) ? [] : [differs(place, shown, real)]
  if (Array.isArray(shown)) return listDifferences(shown, real, place)
  if (typeof shown === 'object' && shown !== null) return objectDifferences(shown, real, place)
  return shown === real ? [] : [differs(place, shown, real)]
}

/** Ids stand for any of their kind, moments for any moment, numbers of phones and of accounts for any such, `…` for anything. */
const kinds = [
  /^[a-z]+_[0-9A-HJKMNP-TV-Z]{26}$/,
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  /^\+?\d{6,20}$/,
  /^[0-9a-f]{64}$/,
]

function isLike(shown: string, real: unknown) {
  if (typeof real !== 'string') return false
  if (shown.includes('…'))
    return new RegExp(
      `^${shown
        .split('…')
        .map((part) => RegExp.escape(part))
        .join('.+')}$`,
      's',
    ).test(real)
  const kind = kinds.find((one) => one.test(shown))
  return shown === real || (kind?.test(real) === true && prefixOf(shown) === prefixOf(real))
}

const prefixOf = (id: string) => /^[a-z]+_|^\+?/.exec(id)?.[0]

function listDifferences(shown: unknown[], real: unknown, place: string) {
  if (!Array.isArray(real) || real.length !== shown.length) return [differs(place, shown, real)]
  return shown.flatMap((one, n) => differences(one, real[n], `${place}[${n}]`))
}

function objectDifferences(shown: object, real: unknown, place: string) {
  if (typeof real !== 'object' || real === null || Array.isArray(real)) return [differs(place, shown, real)]
  const keys = new Set([...Object.keys(shown), ...Object.keys(real)])
  return [...keys].flatMap((key) => {
    if (!(key in shown)) return [`${place}.${key} is not shown`]
    if (!(key in real)) return [`${place}.${key} is not in the answer`]
    return differences(shown[key as keyof object], real[key as keyof object], `${place}.${key}`)
  })
}

const differs = (place: string, shown: unknown, real: unknown) =>
  `${place} is shown as ${JSON.stringify(shown)} and is ${JSON.stringify(real)}`
