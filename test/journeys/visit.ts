import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { open } from '../browser.ts'

export interface Visit {
  page: Page
  /** What the page complained of: script errors, and whatever the content security policy refused. */
  complaints: string[]
}

/** A browser of its own, with nothing in it; what it would ask `https://app.example` is answered here. */
export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext(options)
  await context.route('https://app.example/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>App</title><h1>Back in the app</h1>' }),
  )
  const page = await context.newPage()
  return { page, complaints: await open(page, url) }
}
