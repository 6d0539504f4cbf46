// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks';
import { at, call, get } from '../api';
import { Icon } from '../icons';
import { useResource } from '../live';
import type { Token } from '../types';
import { Ago, Card, Dialog, Empty, Field, Heading, Refusal, Select, Skeleton, useAction } from '../ui';

function Made({ token, onDone }: { token: string; onDone(): void }) {
  const [copied, setCopied] = useState(false);
  return (
    <>
      <p>Copy the token now. It is shown only once.</p>
      <pre class="code wrap" tabIndex={0}>
        {token}
      </pre>
      <div class="form-end">
        <button type="button" onClick={() => void navigator.clipboard?.writeText(token).then(() => setCopied(true))}>
          <Icon name="copy" />
          {copied ? 'Copied' : 'Copy'}
        </button>
        <button type="button" class="primary" onClick={onDone}>
          Done
        </button>
      </div>
    </>
  );
}

function TokenForm({ onMade, onCancel }: { onMade(token: string): void; onCancel(): void }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState('viewer');
  const [expires, setExpires] = useState('');
  const make = useAction(async () => {
    const until = expires ? { expires: new Date(`${expires}T23:59:59Z`).toISOString() } : {};
    onMade((await call<{ token: string }>('POST', '/v1/tokens', { name, role, ...until })).token);
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        make.start();
      }}
    >
      {make.problem && <Refusal problem={make.problem} />}
      <Field label="Name" hint="The program that will use the token, such as ci.">
        <input name="name" required autoFocus maxLength={64} spellcheck={false} autocomplete="off" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </Field>
      <Field label="Role">
        <Select label="Role" value={role} options={['viewer', 'operator', 'admin']} onChange={setRole} />
      </Field>
      <Field label="Last day (UTC)" hint="Leave empty for a token that does not expire.">
        <input name="expires" type="date" value={expires} onInput={(event) => setExpires(event.currentTarget.value)} />
      </Field>
      <div class="form-end">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button class="primary" disabled={make.busy}>
          Create token
        </button>
      </div>
    </form>
  );
}

export function TokensPage() {
  const page = useResource<{ tokens: Token[] }>('tokens', (signal) => get('/v1/tokens', signal));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState('');
  const [revoked, setRevoked] = useState<Token>();
  const revoke = useAction(async (id: string) => {
    await call('DELETE', `/v1/tokens${at(id)}`);
    setRevoked(undefined);
    page.reload();
  });
  const close = () => {
    setMaking(false);
    setMade('');
    page.reload();
  };
  return (
    <>
      <Heading title="Tokens">
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          <Icon name="plus" />
          New token
        </button>
      </Heading>
      <Card flush>
        {page.error && <Refusal problem={page.error} />}
        {!page.data && !page.error && <Skeleton lines={4} />}
        {page.data?.tokens.length === 0 && (
          <Empty icon="tokens" title="No tokens">
            Programs send a token as Authorization: Bearer pawl_…
          </Empty>
        )}
        {page.data && page.data.tokens.length > 0 && (
          <div class="table-place">
            <table>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Role</th>
                  <th class="spare">Created by</th>
                  <th class="spare">Created</th>
                  <th>Expires</th>
                  <th class="end">
                    <span class="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {page.data.tokens.map((token) => (
                  <tr key={token.id}>
                    <td>
                      <strong>{token.name}</strong>
                    </td>
                    <td>{token.role}</td>
                    <td class="spare">{token.by}</td>
                    <td class="quiet spare">
                      <Ago time={token.created_at} />
                    </td>
                    <td class="quiet">{token.expires ? <Ago time={token.expires} /> : 'never'}</td>
                    <td class="end">
                      <button type="button" class="plain danger" onClick={() => setRevoked(token)}>
                        Revoke
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Card>
      <Dialog title={made ? 'Token created' : 'New token'} open={making} onClose={close}>
        {made ? <Made token={made} onDone={close} /> : <TokenForm onMade={setMade} onCancel={close} />}
      </Dialog>
      <Dialog title={`Revoke ${revoked?.name ?? ''}?`} open={revoked !== undefined} onClose={() => setRevoked(undefined)}>
        <p>Programs that use this token are refused at once.</p>
        {revoke.problem && <Refusal problem={revoke.problem} />}
        <div class="form-end">
          <button type="button" onClick={() => setRevoked(undefined)}>
            Keep
          </button>
          <button type="button" class="primary danger" disabled={revoke.busy} onClick={() => revoked && revoke.start(revoked.id)}>
            Revoke
          </button>
        </div>
      </Dialog>
    </>
  );
}
