// Sign-in by a token; a ticket of `kcp console` signs in before this page appears.
import { useSignal } from '@preact/signals'
import type { JSX } from 'preact'
import { visibleText } from '#console/model/visible-text.ts'
import { Command, Notice } from '#console/parts/common.tsx'
import { signIn, signInError } from '#console/state/session.ts'
import { text } from '#console/text.ts'

const t = text.signIn

export function SignInPage(): JSX.Element {
  const token = useSignal('')
  const cluster = useSignal('')
  const isBusy = useSignal(false)
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    const [given, of] = [token.value.trim(), cluster.value.trim()]
    // The page forgets the token before the server has answered.
    token.value = ''
    isBusy.value = true
    await signIn({ token: given, ...(of !== '' && { cluster: of }) })
    isBusy.value = false
  }
  return (
    <main class="sign-in">
      <h1>{t.title}</h1>
      <p>{t.byLink}</p>
      <Command>kcp console</Command>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          {t.token}
          <input
            type="password"
            name="token"
            required
            autocomplete="off"
            value={token.value}
            onInput={(event) => (token.value = event.currentTarget.value)}
          />
        </label>
        <label>
          {t.cluster}
          <input
            name="cluster"
            autocomplete="off"
            pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
            value={cluster.value}
            onInput={(event) => (cluster.value = event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={isBusy.value}>
          {t.submit}
        </button>
      </form>
      {signInError.value === '' ? null : <Notice kind="bad">{visibleText(signInError.value)}</Notice>}
    </main>
  )
}
