// Starts the console. The ticket is taken out of the URL first, before the router or anything else reads the URL.
import '@xterm/xterm/css/xterm.css'
import './style.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { startClock } from './state/clock.ts'
import { startKeys } from './state/keys.ts'
import { startRouter } from './state/router.ts'
import { readSession, signIn, startSession } from './state/session.ts'
import { startTheme } from './state/theme.ts'
import { takeTicket } from './state/ticket.ts'

const ticket = takeTicket()
startTheme()
startSession()
startRouter()
startKeys()
startClock()
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
void (ticket === undefined ? readSession() : signIn({ ticket }))
// A link of `kcp console` opened in a tab that shows the console already.
addEventListener('hashchange', () => {
  const next = takeTicket()
  if (next !== undefined) void signIn({ ticket: next })
})
