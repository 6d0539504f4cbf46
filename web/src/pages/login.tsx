// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem, call, identity } from '../api';
import { go } from '../router';
import type { LoggedIn } from '../types';
import { Field, Refusal, Skeleton, useAction } from '../ui';

/** Where a login leads: to the page that was asked for, not back to this one. */
function enter(answer: LoggedIn): void {
  if (location.pathname === '/login') go('/', true);
  // A one-time password gives no role until another was chosen.
  identity.set({ ...answer, role: answer.must_change_password ? 'anyone' : answer.role });
}

function Frame(props: { title: string; children: ComponentChildren }) {
  useEffect(() => {
    document.title = `${props.title} · Pawl`;
  }, [props.title]);
  return (
    <main class="centre">
      <div class="login card">
        <div class="logo">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="8" />
            <path d="M9 23V9h8.200a5.300 5.300 0 0 1 0 10.600H13" />
            <circle cx="23" cy="23" r="2.400" />
          </svg>
          Pawl
        </div>
        <h1>{props.title}</h1>
        {props.children}
      </div>
    </main>
  );
}

function useFields<T extends Record<string, string>>(first: T): [T, (name: keyof T) => (event: Event) => void] {
  const [fields, setFields] = useState(first);
  return [fields, (name) => (event) => setFields((before) => ({ ...before, [name]: (event.currentTarget as HTMLInputElement).value }))];
}

function PasswordLogin() {
  const [fields, set] = useFields({ user: '', password: '' });
  const login = useAction(async () => enter(await call<LoggedIn>('POST', '/v1/login', fields)));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        login.start();
      }}
    >
      {login.problem && <Refusal problem={login.problem} />}
      <Field label="User">
        <input name="user" autocomplete="username" required autoFocus spellcheck={false} value={fields.user} onInput={set('user')} />
      </Field>
      <Field label="Password">
        <input name="password" type="password" autocomplete="current-password" required value={fields.password} onInput={set('password')} />
      </Field>
      <button class="primary" disabled={login.busy}>
        Log in
      </button>
      <p class="quiet">At its first start, the server prints a user name and a one-time password.</p>
    </form>
  );
}

/** A login link carries its code behind the #, which no server sees; it is removed from the address at once. */
export function LoginPage() {
  const [code] = useState(() => (location.pathname === '/login' ? location.hash.slice(1) : ''));
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    if (!code) return;
    history.replaceState(null, '', '/login');
    call<LoggedIn>('POST', '/v1/login/code', { code }).then(enter, setProblem);
  }, [code]);
  if (code && !problem) {
    return (
      <Frame title="Logging in">
        <Skeleton lines={2} />
      </Frame>
    );
  }
  return (
    <Frame title="Log in">
      {problem && <Refusal problem={problem} />}
      <PasswordLogin />
    </Frame>
  );
}

/** Changes the password; the server then ends every login, so that one follows with the new password. */
export function PasswordForm({ user, button }: { user: string; button: string }) {
  const [fields, set] = useFields({ old: '', new: '', again: '' });
  const change = useAction(async () => {
    if (fields.new !== fields.again) {
      throw new Problem(0, 'invalid_argument', 0, 'The new passwords differ.', 'Enter the same password twice.');
    }
    await call('POST', '/v1/password', { old: fields.old, new: fields.new });
    enter(await call<LoggedIn>('POST', '/v1/login', { user, password: fields.new }));
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.start();
      }}
    >
      {change.problem && <Refusal problem={change.problem} />}
      <input class="sr" autocomplete="username" value={user} readOnly tabIndex={-1} aria-hidden="true" />
      <Field label="Current password">
        <input name="old" type="password" autocomplete="current-password" required value={fields.old} onInput={set('old')} />
      </Field>
      <Field label="New password" hint="12 to 256 bytes">
        <input name="new" type="password" autocomplete="new-password" minLength={12} required value={fields.new} onInput={set('new')} />
      </Field>
      <Field label="Repeat new password">
        <input name="again" type="password" autocomplete="new-password" minLength={12} required value={fields.again} onInput={set('again')} />
      </Field>
      <button class="primary" disabled={change.busy}>
        {button}
      </button>
    </form>
  );
}

export function PasswordPage({ user }: { user: string }) {
  return (
    <Frame title="Choose a password">
      <p class="quiet">
        The password of <strong>{user}</strong> was valid for one login only. Choose your own password to continue.
      </p>
      <PasswordForm user={user} button="Set password" />
    </Frame>
  );
}
