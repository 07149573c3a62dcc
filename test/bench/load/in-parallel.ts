/** Works on the items in their order, so many at a time. */
export async function inParallel<T>(
  atOnce: number,
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const all = Iterator.from(items)
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of all) await work(item)
    }),
  )
}
