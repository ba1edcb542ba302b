// The nonce of the page on `<style>` elements that libraries make, without which the policy of the page refuses them.

const nonce = (): string => document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ''

/** The nonce of this response of the page. */
export const styleNonce = nonce()

let isStamping = false

/** From now on, every `<style>` element that a script creates carries the nonce. Scripts and attributes get none. */
export function stampStyles(): void {
  if (isStamping) return
  isStamping = true
  const create = document.createElementNS.bind(document)
  const stamping = (name: string, options?: ElementCreationOptions): Element => {
    const element = create('http://www.w3.org/1999/xhtml', name.toLowerCase(), options)
    if (element instanceof HTMLStyleElement) element.nonce = styleNonce
    return element
  }
  Object.defineProperty(document, 'createElement', { value: stamping, configurable: true, writable: true })
}
