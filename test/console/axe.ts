// axe-core in a page whose policy allows no scripts but its own: it is run by the protocol of the browser.
import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

export const AxeBuilder = {
  /** The violations of impact serious and critical, one line for each. */
  async serious(page: Page): Promise<string[]> {
    await page.evaluate(`if (!window.axe) { ${axe.source} }`)
    const { violations } = await page.evaluate<{ violations: readonly Violation[] }>('axe.run(document)')
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) =>
        `${id}: ${nodes.map(({ html, failureSummary = '' }) => `${html.slice(0, 160)} ${failureSummary.slice(0, 200)}`).join(' | ')}`.slice(
          0,
          900,
        ),
      )
  },
}
