// SPDX-License-Identifier: Apache-2.0
import { identity } from '../api';
import { useStore } from '../store';
import { Card, Empty, Heading } from '../ui';
import { PasswordForm } from './login';

const roles: Record<string, string> = {
  viewer: 'Can read everything.',
  operator: 'Can read everything, create instances, send events and resize permit pools.',
  admin: 'Can do everything, including managing users and tokens.',
};

export function AccountPage() {
  const known = useStore(identity);
  if (!known?.csrf) {
    return (
      <>
        <Heading title="Account" />
        <Empty icon="lock" title="No login">
          This server runs without authentication.
        </Empty>
      </>
    );
  }
  return (
    <>
      <Heading title="Account" />
      <div class="narrow stack">
        <Card title={known.user}>
          <p>
            <span class="tag">{known.role}</span> {roles[known.role]}
          </p>
        </Card>
        <Card title="Change password">
          <p class="quiet">Changing the password ends all other sessions.</p>
          <PasswordForm user={known.user} button="Change password" />
        </Card>
        <p class="quiet">
          The dashboard contains <a href="/licenses.txt">open-source software</a>.
        </p>
      </div>
    </>
  );
}
